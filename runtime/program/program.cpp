#include "runtime/program/program.h"

#include <fmt/format.h>

namespace gk::program {
namespace {

std::string text(const Scalar& s) {
  if (s.dtype == DType::Bool) return s.i != 0 ? "true" : "false";
  if (s.dtype == DType::U64) return fmt::format("{}: {}", static_cast<uint64_t>(s.i), name(s.dtype));
  if (s.is_float()) return fmt::format("{}: {}", s.f, name(s.dtype));
  return fmt::format("{}: {}", s.i, name(s.dtype));
}

// A slot by its name, a temporary as arena[from..to); a part of a slot with its extent.
std::string text(const Program& p, const Ref& r) {
  if (r.kind == Ref::Kind::Arena) {
    return fmt::format("arena[{}..{})", r.offset_bytes, r.offset_bytes + r.size_bytes);
  }
  const auto i = static_cast<size_t>(r.index);
  if (i >= p.slots.size()) return fmt::format("slot {}?", r.index);
  const Slot& slot = p.slots[i];
  const std::string stem = slot.name.empty() ? fmt::format("%{}", r.index) : slot.name;
  if (r.offset_bytes == 0 && r.size_bytes == slot.size_bytes) return stem;
  return fmt::format("{}[{}..{})", stem, r.offset_bytes, r.offset_bytes + r.size_bytes);
}

constexpr size_t kMostListed = 8;  // of arguments and arrays: a line is to be read
constexpr size_t kLongestLabel = 64;

template <class T, class F>
std::string list(const std::vector<T>& items, F text_of) {
  std::string out;
  for (size_t i = 0; i < items.size() && i < kMostListed; ++i) out += (i ? ", " : "") + text_of(items[i]);
  if (items.size() > kMostListed) out += fmt::format(", ... {} more", items.size() - kMostListed);
  return out;
}

std::string list(const Program& p, const std::vector<Ref>& refs) {
  return refs.empty() ? "-" : list(refs, [&](const Ref& r) { return text(p, r); });
}

std::string shortened(const std::string& label) {
  return label.size() <= kLongestLabel ? label : label.substr(0, kLongestLabel) + "...";
}

std::string text(const Program& p, const Arg& a) {
  switch (a.kind) {
    case Arg::Kind::Pointer: return text(p, a.ref);
    case Arg::Kind::Value: return text(a.value);
    case Arg::Kind::ScalarSlot: return fmt::format("scalar {}: {}", a.slot, name(a.dtype));
    case Arg::Kind::Faults: return "faults";
    case Arg::Kind::StepIndex: return "step";
  }
  return "";
}

std::string name_of(TargetKind t) { return t == TargetKind::Host ? "host" : "cuda"; }

std::string text(TargetKind target, const LaunchDims& d) {
  if (target == TargetKind::Host) return fmt::format("items={} grain={}", d.items, d.grain);
  const auto three = [](const uint32_t v[3]) { return fmt::format("{}x{}x{}", v[0], v[1], v[2]); };
  return fmt::format("grid={} block={} shared={}", three(d.grid), three(d.block), d.shared_bytes);
}

std::string steps(const Program& p, const std::string& indent);

// The bodies of an If, While or Repeat: where their slots are in the program around, then their steps.
std::string bodies(const Program& p, const Step& s, const std::string& indent) {
  std::string out;
  for (size_t b = 0; b < s.bodies.size(); ++b) {
    const Body& body = s.bodies[b];
    const char* what = s.kind != Step::Kind::If ? "do" : b == 0 ? "then" : "else";
    out += indent + what;
    if (!body.program) {
      out += " -\n";
      continue;
    }
    const Program& inner = *body.program;
    out += fmt::format(" steps={} arena={} at {}\n", inner.steps.size(), inner.arena_bytes,
                       body.arena_offset_bytes);
    for (size_t i = 0; i < inner.slots.size() && i < body.slots.size(); ++i) {
      const Slot& slot = inner.slots[i];
      out += fmt::format("{}  slot {} {}: {}{}{}{} = {}\n", indent, i, slot.name.empty() ? "-" : slot.name,
                         name(slot.dtype), to_string(slot.shape), slot.read ? " read" : "",
                         slot.written ? " written" : "", text(p, body.slots[i]));
    }
    for (size_t i = 0; i < body.scalars.size(); ++i)
      out += body.scalars[i] == Body::kTurn
                 ? fmt::format("{}  scalar {} = the turn\n", indent, i)
                 : fmt::format("{}  scalar {} = scalar {} around\n", indent, i, body.scalars[i]);
    out += steps(inner, indent + "  ");
  }
  return out;
}

std::string steps(const Program& p, const std::string& indent) {
  std::string out;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const Step& s = p.steps[i];
    out += fmt::format("{}step {} ", indent, i);
    switch (s.kind) {
      case Step::Kind::Launch: {
        const std::string args = list(s.args, [&](const Arg& a) { return text(p, a); });
        out += fmt::format("launch {} {} ({})", shortened(s.label), text(p.target(s), s.dims), args);
        break;
      }
      case Step::Kind::Copy: out += "copy"; break;
      case Step::Kind::Library:
        out += fmt::format("library {} {}", s.label.empty() ? name(s.library) : s.label, text(s.library));
        break;
      case Step::Kind::If: out += "if " + (s.reads.empty() ? "?" : text(p, s.reads[0])); break;
      case Step::Kind::While: out += "while " + (s.reads.empty() ? "?" : text(p, s.reads[0])); break;
      case Step::Kind::Repeat: out += fmt::format("repeat {}", s.times); break;
    }
    out += fmt::format(" reads {} writes {}\n", list(p, s.reads), list(p, s.writes));
    out += bodies(p, s, indent + "  ");
  }
  return out;
}

}  // namespace

std::string print(const Program& p) {
  std::string out =
      fmt::format("program {} target={} steps={} arena={} temporaries={} ({} bytes unplanned)\n",
                  p.name.empty() ? "-" : p.name, list(p.targets, name_of), p.steps.size(), p.arena_bytes,
                  p.temporaries, p.temporaries_bytes);
  for (size_t i = 0; i < p.slots.size(); ++i) {
    const Slot& s = p.slots[i];
    out += fmt::format("  slot {} {}: {}{} {} bytes{}{}{}\n", i, s.name.empty() ? "-" : s.name, name(s.dtype),
                       to_string(s.shape), s.size_bytes, s.read ? " read" : "", s.written ? " written" : "",
                       s.fresh ? " fresh" : "");
  }
  for (size_t i = 0; i < p.scalars.size(); ++i)
    out += fmt::format("  scalar {} = {}\n", i, text(p.scalars[i]));
  return out + steps(p, "  ");
}

}  // namespace gk::program
