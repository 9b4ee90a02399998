#include "tests/property/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <regex>
#include <sstream>

#include "compiler/formats/npy.h"
#include "gk/gk.h"

namespace gk::property {

namespace {

namespace fs = std::filesystem;

struct Run {
  Status status = Status::Ok;
  std::string errors, printed;
  formats::NamedArrays arrays;
};

bool close(double value, double model, double err) {
  if (std::isnan(model)) return std::isnan(value);
  if (std::isinf(model) || !std::isfinite(value)) return value == model;
  return std::fabs(value - model) <= 2 * err;
}

std::string against_model(const interp::Array& got, const Array& want) {
  if (got.dtype != want.dtype) return fmt::format("{} instead of {}", name(got.dtype), name(want.dtype));
  if (Dims(got.shape.begin(), got.shape.end()) != want.shape)
    return fmt::format("{} instead of [{}]", to_string(got.shape), fmt::join(want.shape, ", "));
  for (size_t k = 0; k < want.cells.size(); ++k) {
    const Scalar s = got.get(static_cast<int64_t>(k));
    const Cell& c = want.cells[k];
    if (is_floating(want.dtype) ? !close(s.f, c.f, c.err) : s.i != c.i)
      return is_floating(want.dtype)
                 ? fmt::format("element {} is {} instead of {} (within {})", k, s.f, c.f, 2 * c.err)
                 : fmt::format("element {} is {} instead of {}", k, s.i, c.i);
  }
  return "";
}

std::string bits(const interp::Array& a, const interp::Array& b) {
  if (a.dtype != b.dtype || !(a.shape == b.shape)) return "another dtype or shape";
  for (int64_t k = 0; k < a.size(); ++k) {
    const Scalar x = a.get(k), y = b.get(k);
    if (x == y || (x.is_float() && std::isnan(x.f) && std::isnan(y.f))) continue;
    return fmt::format("element {} is {} and {}", k, x.as_double(), y.as_double());
  }
  return "";
}

// The numbers in what was printed, "@7 [1. 2.]" for number 7, against those of
// the model.
std::string prints(const std::string& printed, const std::vector<Observed>& want) {
  size_t at = 0;
  for (const Observed& o : want) {
    const std::string mark = fmt::format("@{} ", o.id);
    const size_t from = printed.find(mark, at);
    if (from == std::string::npos) return fmt::format("print {} is missing", o.id);
    at = from + mark.size();
    const size_t to = std::min(printed.find('@', at), printed.size());
    std::vector<double> model, err;
    if (o.value.number()) {
      model.push_back(o.value.kind == Value::Kind::Int ? static_cast<double>(o.value.n) : o.value.f);
      err.push_back(0);
    }
    for (const Cell& c : o.value.a.cells) {
      const bool u64 = o.value.a.dtype == DType::U64;
      model.push_back(is_floating(o.value.a.dtype) ? c.f
                      : u64                        ? static_cast<double>(static_cast<uint64_t>(c.i))
                                                   : static_cast<double>(c.i));
      err.push_back(c.err);
    }
    static const std::regex kNumber(
        "True|False|nan|-?inf|[-+]?[0-9]+\\.?[0-9]*(e[-+]?[0-9]+)?|[-+]?\\.[0-"
        "9]+(e[-+]?[0-9]+)?");
    size_t k = 0;
    for (std::sregex_iterator it(printed.begin() + static_cast<int64_t>(at),
                                 printed.begin() + static_cast<int64_t>(to), kNumber),
         end;
         it != end; ++it, ++k) {
      const std::string text = it->str();
      const double v = text == "True" ? 1 : text == "False" ? 0 : std::strtod(text.c_str(), nullptr);
      if (k >= model.size()) return fmt::format("print {} has too many numbers", o.id);
      // The shortest digits that are read back as the number, in its dtype.
      const DType t = o.value.array() ? o.value.a.dtype : DType::F64;
      const double digits = std::fabs(model[k]) * (t == DType::BF16  ? 8e-3
                                                   : t == DType::F16 ? 1e-3
                                                                     : 1e-5) +
                            1e-7;
      double greatest = 0;
      for (double m : model)
        if (std::isfinite(m)) greatest = std::max(greatest, std::fabs(m));
      if (!close(v, model[k], err[k] + digits + greatest * 1e-6) &&
          !(std::isinf(v) && std::fabs(model[k]) > 3e38))
        return fmt::format("print {} has {} instead of {}", o.id, text, model[k]);
    }
    if (k != model.size()) return fmt::format("print {} has {} numbers instead of {}", o.id, k, model.size());
  }
  return "";
}

bool updates_nodes(const Block& b) {
  for (const Stmt& s : b)
    if (s.kind == Stmt::Kind::UpdateNode || updates_nodes(s.body) || updates_nodes(s.other)) return true;
  return false;
}

// "error[E0301]: cannot add …" without what names and numbers say.
std::string refusal(const std::string& errors) {
  static const std::regex kCode("\\[(E[0-9]+)\\]: ([^\n]*)");
  std::smatch m;
  if (!std::regex_search(errors, m, kCode)) return "no diagnostic";
  std::string text = m[2].str();
  return m[1].str() + " " + std::regex_replace(text.substr(0, 40), std::regex("[0-9]+|`[^`]*`?"), "#");
}

}  // namespace

struct Bench::Way {
  std::string name, device, folder, cache;
  bool captures = true, fuse_off = false, step_by_step = false;
  bool typed = false;  // entry by entry, as in the REPL
  std::unique_ptr<Session> session;
  std::string out, err;

  // What is checked of an entry knows what the entries before it became.
  Status type(const std::string& text) {
    std::istringstream lines(text);
    std::string entry;
    for (std::string line; std::getline(lines, line);) {
      entry += line + "\n";
      if (unfinished(entry)) continue;
      const Status status = session->enter("entry", entry, false);
      if (status != Status::Ok) return status;
      entry.clear();
    }
    return Status::Ok;
  }

  Run run(const Program& p) {
    // Each program gets a session of its own: a seed is then enough to see it
    // again.
    SessionOptions o;
    o.device = device;
    o.eager = step_by_step;
    o.use_cache = true;
    o.cache_dir = cache;
    o.out = [this](std::string_view t) { out += t; };
    o.err = [this](std::string_view t) { err += t; };
    out.clear();
    err.clear();
    session = Session::open(o);
    Style style;
    style.inline_captured = captures;
    style.fuse_off = fuse_off;
    style.folder = folder;
    std::error_code ignored;
    fs::remove(folder + "/out.npz", ignored);
    Run r;
    r.status = typed ? type(to_text(p, style)) : session->run("generated.gk", to_text(p, style));
    session.reset();
    r.errors = err;
    r.printed = out;
    if (r.status != Status::Ok || p.results.empty()) return r;
    auto arrays = formats::read_npz(folder + "/out.npz");
    if (arrays)
      r.arrays = std::move(*arrays);
    else
      r.errors = arrays.error().message;
    return r;
  }
};

Bench::Bench(std::string device, std::string folder)
    : device_(std::move(device)), folder_(std::move(folder)) {
  auto way = [&](const char* n, const std::string& on, bool captures, bool fuse_off, bool step_by_step) {
    auto w = std::make_unique<Way>();
    w->name = n;
    w->device = on;
    w->folder = folder_;
    w->cache = folder_ + "/cache";
    w->captures = captures;
    w->fuse_off = fuse_off;
    w->step_by_step = step_by_step;
    ways_.push_back(std::move(w));
  };
  way("graph", device_, true, false, false);
  way("interp", "interp", true, false, false);
  way("eager", device_, false, false, true);
  way("unfused", device_, true, true, false);
  way("typed", device_, true, false, false);
  ways_.back()->typed = true;
}

Bench::~Bench() = default;

std::optional<Failure> Bench::check(const Program& p, bool all_ways) {
  const Outcome model = run_model(p);
  std::optional<Run> first;
  for (const auto& w : ways_) {
    if (w->fuse_off && updates_nodes(p.body)) continue;  // a node of several kernels is not retargeted
    const bool chosen = w->typed          ? p.seed % 4 == 1
                        : w->step_by_step ? p.seed % 2 == 0
                                          : !w->fuse_off || p.seed % 2 == 1;
    if (!all_ways && !chosen) continue;
    if (on_way) on_way(w->name);
    const Run r = w->run(p);
    if (r.status != Status::Ok)
      return Failure{fmt::format("{} refuses: {}", w->name, refusal(r.errors)), r.errors};
    if (r.arrays.size() != p.results.size()) return Failure{w->name + " loses results", r.errors};
    if (auto d = prints(r.printed, model.observed); !d.empty())
      return Failure{w->name + " prints another number", d};
    for (size_t k = 0; k < p.results.size(); ++k)
      if (auto d = against_model(r.arrays[k].second, model.results[k]); !d.empty())
        return Failure{fmt::format("{} gives another {} than the model", w->name,
                                   d.find("element") == 0 ? "number"
                                   : d.find('[') < d.npos ? "shape"
                                                          : "dtype"),
                       fmt::format("r{} = {}: {}", k, to_text(p.results[k]), d)};
    if (!first) {
      first = r;
    } else if (w->device == device_) {
      for (size_t k = 0; k < p.results.size(); ++k)
        if (auto d = bits(first->arrays[k].second, r.arrays[k].second); !d.empty())
          return Failure{"graph against " + w->name,
                         fmt::format("r{} = {}: {}", k, to_text(p.results[k]), d)};
    }
  }
  return {};
}

}  // namespace gk::property
