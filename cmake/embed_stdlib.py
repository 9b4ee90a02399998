"""Writes the rows of the library in gk: embed_stdlib.py OUT FILE...

A row a definition with a `##` line before it: name, signature, doc, and the number of its file; before them the files
with their texts. A name that begins with `_` is the library's own. Fails where a definition is not of this form."""
import re
import sys


def literal(text):
    # A string literal has a length limit in some compilers: one a line.
    lines = text.splitlines(keepends=True) or [""]
    return "\n".join('"' + s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"' for s in lines)


def signature(name, params, where):
    out = []
    for p in filter(None, (p.strip() for p in params.split(","))):
        m = re.fullmatch(r"(mut )?([a-z_][a-z_0-9]*)( = (.+))?", p)
        if not m:
            sys.exit(f"{where}: a parameter is `name`, `mut name` or `name = value`, not `{p}`")
        mut, plain, _, value = m.groups()
        # What stands for it is told where a user could write it.
        shown = "" if value is None or value.startswith("_") else f" = {value}"
        out.append((mut or "") + plain + ("?" if value is not None else "") + shown)
    return f"{name}({', '.join(out)})"


def main(out, files):
    texts, rows = [], []
    for number, path in enumerate(files):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        short = "stdlib/" + path.rsplit("/", 1)[-1]
        texts.append(f"GK_LIBRARY_FILE({literal(short)}, {literal(text)})")
        doc = ""
        for at, line in enumerate(text.splitlines(), 1):
            if line.startswith("## "):
                doc = (doc + " " + line[3:].strip()).strip()
                continue
            m = re.match(r"fn ([a-z_0-9]+)\((.*?)\) [={]", line)
            if line.startswith("fn ") and not m:
                sys.exit(f"{short}:{at}: a definition begins `fn name(parameters) =` or `… {{` in one line")
            if m and not m[1].startswith("_"):
                if not doc:
                    sys.exit(f"{short}:{at}: `{m[1]}` has no `##` line")
                call = signature(m[1], m[2], f"{short}:{at}")
                rows.append(f"GK_LIBRARY_FN({number}, {literal(m[1])}, {literal(call)}, {literal(doc)})")
            doc = ""
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(texts + rows) + "\n")


main(sys.argv[1], sys.argv[2:])
