// Builtins: host side: printing, files, lengths, reading back, placement, graphs. And the table of all.
#include <algorithm>

#include "compiler/sema/builtin_args.h"
#include "compiler/sema/printing.h"

namespace gk::sema {

namespace {

Value dim_scalar(const ir::Dim& d) {
  Value v = d.is_known() ? Value::host(d.value) : Value::unknown_host(DType::I64);
  v.symbol = d.symbol;
  v.text = d.name == "_" ? "" : d.name;
  return v;
}

Result<Value> print(Evaluator& ev, Call& call) {
  GK_CHECK(ev.refuse_in_capture("`print`", call.span));
  for (const CallArg& a : call.args)
    if (!a.name.empty())
      return fail(
          make_error(ErrorKind::Type, "E0206", fmt::format("`print` has no argument `{}`", a.name), a.span)
              .note("it writes its arguments with a space between them, and a newline")
              .help("join texts by `+`, or write them in an f-string: `print(f\"{x}, {y}\")`"));
  if (!ev.running()) return Value::none();
  std::string line;
  for (size_t i = 0; i < call.args.size(); ++i) {
    GK_TRY(auto t, text_of(ev, call.args[i].value, call.args[i].span, false));
    if (i) line += " ";
    line += t;
  }
  // A fault of the work so far belongs before what is printed next.
  GK_CHECK(ev.flush(call.span));
  auto sync = ev.effects()->synchronize();
  if (!sync) return fail(std::move(sync.error()).at(call.span));
  ev.note_outside();
  ev.effects()->print(line + "\n");
  return Value::none();
}

Result<Value> item(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  const Value& v = a.value(0);
  if (v.is_unknown()) return v;
  if (v.is_scalar()) return Value::host(v.scalar);
  if (!v.is_array())
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`item` takes an array of one element, not {}", describe(v)), a.span(0));
  GK_CHECK(ev.refuse_in_capture("`item`", call.span));
  const auto& t = v.array->type;
  if (t.fully_known() && num_elements(t.shape()) != 1)
    return fail(ErrorKind::Shape, "E0303", fmt::format("`item` takes one element, not {}", ir::to_string(t)),
                a.span(0));
  if (!ev.running())
    return Value::unknown_host(gk::is_float(t.dtype) ? DType::F64
                               : is_bool(t.dtype)    ? DType::Bool
                                                     : DType::I64);
  GK_TRY(auto s, ev.item(v, call.span));
  return Value::host(s);
}

Result<Value> len(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  const Value& v = a.value(0);
  switch (v.kind) {
    case VKind::Unknown: return Value::unknown_host(DType::I64);
    case VKind::Strings:
      return ev.running() ? Value::host(static_cast<int64_t>(v.strings->size()))
                          : Value::unknown_host(DType::I64);
    case VKind::String: return Value::host(static_cast<int64_t>(v.text.size()));
    case VKind::List:
    case VKind::Tuple: return Value::host(static_cast<int64_t>(v.items->items.size()));
    case VKind::Array:
      if (v.array->type.rank() > 0) return dim_scalar(v.array->type.dims[0]);
      [[fallthrough]];
    default: return fail(ErrorKind::Type, "E0202", fmt::format("{} has no length", describe(v)), a.span(0));
  }
}

Result<Value> shape(Evaluator&, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  Value r;
  r.kind = VKind::Tuple;
  r.items = std::make_shared<Aggregate>();
  if (a.value(0).is_array())
    for (const auto& d : a.value(0).array->type.dims) r.items->items.push_back(dim_scalar(d));
  else if (!a.value(0).is_scalar())
    return fail(ErrorKind::Type, "E0202", fmt::format("{} has no shape", describe(a.value(0))), a.span(0));
  return r;
}

Result<Value> size(Evaluator&, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown_host(DType::I64);
  if (a.value(0).is_scalar()) return Value::host(1);
  if (!a.value(0).is_array())
    return fail(ErrorKind::Type, "E0202", fmt::format("{} has no size", describe(a.value(0))), a.span(0));
  const auto& t = a.value(0).array->type;
  if (!t.fully_known()) return Value::unknown_host(DType::I64);
  return Value::host(num_elements(t.shape()).value_or(0));
}

Result<Value> ndim(Evaluator&, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown_host(DType::I64);
  if (a.value(0).is_scalar()) return Value::host(0);
  if (!a.value(0).is_array())
    return fail(ErrorKind::Type, "E0202", fmt::format("{} has no rank", describe(a.value(0))), a.span(0));
  return Value::host(a.value(0).array->type.rank());
}

}  // namespace

Result<ArrayPtr> host_array(Evaluator& ev, const interp::Array& a, bool loose) {
  auto data = std::make_shared<ArrayData>();
  data->type = ir::Type::of(a.dtype, a.shape);
  data->wanted = Placement::Host;
  data->loose = loose;
  data->storage = std::make_shared<Storage>();
  data->storage->type = data->type;
  data->storage->placement = Placement::Host;
  data->storage->owner = data.get();
  GK_CHECK(ev.effects()->allocate(*data->storage));
  GK_CHECK(ev.effects()->upload(*data->storage, a));
  return data;
}

namespace {

Result<Value> host(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  if (!a.value(0).is_array())
    return fail(ErrorKind::Type, "E0202", fmt::format("`host` takes an array, not {}", describe(a.value(0))),
                a.span(0));
  GK_CHECK(ev.refuse_in_capture("`host`", call.span));
  if (!ev.running()) {
    auto r = ev.trace().pending(a.value(0).array->type, -1);
    r->wanted = Placement::Host;
    return Value::of_array(r);
  }
  GK_TRY(auto data, ev.download(a.value(0), call.span));
  GK_TRY(auto r, host_array(ev, data, false));
  return Value::of_array(r);
}

Result<Value> device(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  GK_TRY(auto value, ev.value_of(x, call.span));
  return Value::of_array(ev.trace().pending(x->type, value));
}

Result<Value> load(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  if (a.value(0).kind != VKind::String)
    return fail(ErrorKind::Type, "E0202", fmt::format("`load` takes a path, not {}", describe(a.value(0))),
                a.span(0));
  GK_CHECK(ev.refuse_in_capture("`load`", call.span));
  for (std::string_view ending : {".csv", ".txt", ".tsv", ".json", ".h5", ".mat", ".pkl", ".pt"})
    if (a.value(0).text.ends_with(ending))
      return fail(make_error(ErrorKind::Io, "E1002",
                             fmt::format("`load` reads .npy and .npz, not {}", ending), a.span(0))
                      .help(fmt::format("convert it with NumPy (`np.save`), then `load(\"{}.npy\")`",
                                        a.value(0).text.substr(0, a.value(0).text.size() - ending.size()))));
  if (!ev.running()) return Value::unknown();
  ev.note_outside();
  auto arrays = ev.effects()->load(a.value(0).text);
  if (!arrays) return fail(std::move(arrays.error()).at(call.span));
  if (arrays->size() == 1 && (*arrays)[0].name.empty()) {
    auto elements = (*arrays)[0].read();
    if (!elements) return fail(std::move(elements.error()).at(call.span));
    GK_TRY(auto x, host_array(ev, *elements, true));
    return Value::of_array(x);
  }
  Value r;
  r.kind = VKind::Record;
  r.items = std::make_shared<Aggregate>();
  // Fields that the program does not use are never read, and need not be of a kind that the language has.
  std::map<std::string, Error, std::less<>> unreadable;
  for (auto& stored : *arrays) {
    if (stored.unreadable) {
      unreadable.emplace(std::move(stored.name), std::move(*stored.unreadable));
      continue;
    }
    r.items->names.push_back(std::move(stored.name));
    auto data = std::make_shared<ArrayData>();
    data->type = ir::Type::of(stored.dtype, stored.shape);
    data->storage = std::make_shared<Storage>();
    data->storage->type = data->type;
    data->storage->owner = data.get();
    data->loose = true;
    GK_CHECK(ev.effects()->allocate_stored(*data->storage, std::move(stored.read)));
    r.items->items.push_back(Value::of_array(data));
  }
  if (!unreadable.empty())
    r.items->unreadable = std::make_shared<const decltype(unreadable)>(std::move(unreadable));
  return r;
}

Result<void> gather(Evaluator& ev, const std::string& prefix, const Value& v, Span span,
                    std::vector<std::pair<std::string, interp::Array>>& out) {
  if (v.is_aggregate()) {
    for (size_t i = 0; i < v.items->items.size(); ++i) {
      std::string part = v.kind == VKind::Record ? v.items->names[i] : std::to_string(i);
      GK_CHECK(gather(ev, prefix.empty() ? part : prefix + "." + part, v.items->items[i], span, out));
    }
    return {};
  }
  if (!v.is_array() && !v.is_scalar())
    return fail(ErrorKind::Type, "E0202", fmt::format("cannot save {}", describe(v)), span);
  if (!ev.running()) return {};
  GK_TRY(auto a, ev.download(v, span));
  out.emplace_back(prefix, std::move(a));
  return {};
}

Result<Value> save(Evaluator& ev, Call& call) {
  if (call.args.empty() || !call.args[0].name.empty() || call.args.size() < 2)
    return fail(make_error(ErrorKind::Type, "E0206", "`save` takes a path and what to save", call.span)
                    .help("`save(\"x.npy\", x)` or `save(\"p.npz\", w=w, b=b)`"));
  if (call.args[0].value.is_unknown()) return Value::none();
  if (call.args[0].value.kind != VKind::String)
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`save` takes a path, not {}", describe(call.args[0].value)), call.args[0].span);
  GK_CHECK(ev.refuse_in_capture("`save`", call.span));
  const std::string& path = call.args[0].value.text;
  bool npz = path.size() > 4 && path.ends_with(".npz");
  if (!npz && !path.ends_with(".npy"))
    return fail(make_error(ErrorKind::Type, "E0202", fmt::format("`{}` is neither .npy nor .npz", path),
                           call.args[0].span)
                    .help("the ending says which: `x.npy` for one array, `p.npz` for several"));
  std::vector<std::pair<std::string, interp::Array>> out;
  for (size_t i = 1; i < call.args.size(); ++i) {
    const auto& a = call.args[i];
    if (a.value.is_unknown()) {
      if (!ev.running()) return Value::none();
    }
    std::string n = a.name;
    if (npz && n.empty() && !a.value.is_aggregate()) n = fmt::format("arr_{}", i - 1);
    GK_CHECK(gather(ev, n, a.value, a.span, out));
  }
  if (!npz && (call.args.size() != 2 || call.args[1].value.is_aggregate()))
    return fail(make_error(ErrorKind::Type, "E0206", "an .npy file holds one array", call.span)
                    .help("save several as `.npz`"));
  if (!ev.running()) return Value::none();
  GK_CHECK(ev.effects()->synchronize());
  ev.note_outside();
  auto r = ev.effects()->save(path, out);
  if (!r) return fail(std::move(r.error()).at(call.span));
  return Value::none();
}

Result<Value> instantiate(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return ev.instantiate(a.value(0), call.span);
}

}  // namespace

extern const std::vector<BuiltinInfo> kHostBuiltins;
const std::vector<BuiltinInfo> kHostBuiltins = {
    {"print", "print(x, …)", "Writes values and a newline to standard output.", print},
    {"item", "item(x)", "Reads an array of one element back, as a host number: exact, without a dtype.",
     item},
    {"len", "len(x)", "Length of a list, or of an array's first axis.", len},
    {"shape", "shape(x)", "The extents, as a tuple of host integers.", shape},
    {"size", "size(x)", "The number of elements.", size},
    {"ndim", "ndim(x)", "The rank.", ndim},
    {"host", "host(x)", "A copy in host memory.", host},
    {"device", "device(x)", "A copy in device memory.", device},
    {"load", "load(path)", "Reads an .npy file (one array) or an .npz file (a record).", load},
    {"save", "save(path, x) or save(path, name=x, …)", "Writes an .npy or .npz file.", save},
    {"instantiate", "instantiate(graph)", "An executable of a graph.", instantiate},
};

}  // namespace gk::sema
