#include "compiler/sema/habits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/base/dtype.h"

namespace gk::sema {
namespace {

enum Where : uint8_t { Arrays, Anywhere };  // Anywhere: said of single numbers too, so in kernels

/// `write` has $1 for the first argument, %1 for the same as an operand, $* for all of them; `along` is the
/// form for a call with `axis=`, which stands in it as $axis.
struct Habit {
  std::string_view name, write, along;
  Where where = Arrays;
};

constexpr Habit kHabits[] = {
    // products
    {"dot", "%1 @ %2", ""},
    {"inner", "%1 @ %2", ""},
    {"mm", "%1 @ %2", ""},
    {"bmm", "%1 @ %2", ""},
    {"vdot", "sum(%1 * %2)", ""},
    {"outer", "%1[:, new] * %2", ""},
    {"identity", "eye($1)", ""},
    // arithmetic that has an operator
    {"add", "%1 + %2", "", Anywhere},
    {"subtract", "%1 - %2", "", Anywhere},
    {"multiply", "%1 * %2", "", Anywhere},
    {"divide", "%1 / %2", "", Anywhere},
    {"true_divide", "%1 / %2", "", Anywhere},
    {"floor_divide", "%1 // %2", "", Anywhere},
    {"fld", "%1 // %2", "", Anywhere},
    {"mod", "%1 % %2", "", Anywhere},
    {"remainder", "%1 % %2", "", Anywhere},
    {"negative", "-%1", "", Anywhere},
    {"reciprocal", "1 / %1", "", Anywhere},
    {"logical_and", "%1 & %2", "", Anywhere},
    {"logical_or", "%1 | %2", "", Anywhere},
    {"logical_xor", "%1 ^ %2", "", Anywhere},
    {"logical_not", "~%1", "", Anywhere},
    {"bitwise_and", "%1 & %2", "", Anywhere},
    {"bitwise_or", "%1 | %2", "", Anywhere},
    {"bitwise_xor", "%1 ^ %2", "", Anywhere},
    {"bitwise_not", "~%1", "", Anywhere},
    {"invert", "~%1", "", Anywhere},
    {"left_shift", "%1 << %2", "", Anywhere},
    {"right_shift", "%1 >> %2", "", Anywhere},
    {"equal", "%1 == %2", "", Anywhere},
    {"not_equal", "%1 != %2", "", Anywhere},
    {"less", "%1 < %2", "", Anywhere},
    {"less_equal", "%1 <= %2", "", Anywhere},
    {"greater", "%1 > %2", "", Anywhere},
    {"greater_equal", "%1 >= %2", "", Anywhere},
    // other names
    {"absolute", "abs($*)", "", Anywhere},
    {"fabs", "abs($*)", "", Anywhere},
    {"arcsin", "asin($*)", "", Anywhere},
    {"arccos", "acos($*)", "", Anywhere},
    {"arctan", "atan($*)", "", Anywhere},
    {"arctan2", "atan2($*)", "", Anywhere},
    {"arcsinh", "asinh($*)", "", Anywhere},
    {"arccosh", "acosh($*)", "", Anywhere},
    {"arctanh", "atanh($*)", "", Anywhere},
    {"power", "pow($*)", "", Anywhere},
    {"fmax", "maximum($*)", "", Anywhere},
    {"fmin", "minimum($*)", "", Anywhere},
    {"ln", "log($*)", "", Anywhere},
    {"rint", "round($*)", "", Anywhere},
    {"clamp", "clip($*)", ""},
    {"ifelse", "where($*)", "", Anywhere},
    {"abs2", "square($*)", "", Anywhere},
    {"amax", "max($*)", "max($*)"},
    {"amin", "min($*)", "min($*)"},
    {"average", "mean($*)", "mean($*)"},
    {"concatenate", "concat($*)", "concat($*)"},
    {"cat", "concat($*)", "concat($*)"},
    {"vcat", "concat([$*])", ""},
    {"hstack", "concat($1, axis=-1)", ""},
    {"column_stack", "stack($1, axis=1)", ""},
    {"append", "concat([$1, $2])", "concat([$1, $2], axis=$axis)"},
    {"permute", "transpose($*)", ""},
    {"permute_dims", "transpose($*)", ""},
    {"permutedims", "transpose($*)", ""},
    {"length", "len($*)", ""},
    {"ndims", "ndim($*)", ""},
    {"println", "print($*)", ""},
    {"empty_like", "zeros_like($*)", ""},
    {"similar", "zeros_like($1)", ""},
    {"cpu", "host($1)", ""},
    {"cuda", "device($1)", ""},
    {"astype", "$2($1)", ""},
    {"array", "$1", ""},
    {"asarray", "$1", ""},
    {"tensor", "$1", ""},
    {"range", "arange($*)", ""},
    {"str", "f\"{$1}\"", ""},
    {"view", "reshape($*)", ""},
    // said with what there is
    {"std", "sqrt(mean(square(%1 - mean($1))))",
     "sqrt(mean(square(%1 - mean($1, axis=$axis, keepdims=true)), axis=$axis))"},
    {"norm", "sqrt(sum(square($1)))", "sqrt(sum(square($1), axis=$axis))"},
    {"trace", "sum(%1 * eye(len($1)))", ""},
    {"roll", "concat([%1[-%2:], %1[:-%2]])", ""},
    {"flip", "%1[::-1]", ""},
    {"flipud", "%1[::-1]", ""},
    {"reverse", "%1[::-1]", ""},
    {"fliplr", "%1[:, ::-1]", ""},
    {"ravel", "reshape($1, -1)", ""},
    {"flatten", "reshape($1, -1)", ""},
    {"vec", "reshape($1, -1)", ""},
    {"expand_dims", "%1[new]", "%1[:, new]"},
    {"unsqueeze", "%1[new]", ""},
    {"tile", "concat(list($2, _ => $1))", ""},
    {"repeat", "reshape(broadcast_to(%1[:, new], (len($1), $2)), -1)", ""},
    {"diff", "%1[1:] - %1[:-1]", ""},
    {"trapezoid", "sum((%1[1:] + %1[:-1]) * (%2[1:] - %2[:-1])) / 2", ""},
    {"trapz", "sum((%1[1:] + %1[:-1]) * (%2[1:] - %2[:-1])) / 2", ""},
    {"nansum", "sum(where(isnan($1), 0, $1))", "sum(where(isnan($1), 0, $1), axis=$axis)"},
    {"array_equal", "all(%1 == %2)", ""},
    {"allclose", "all(abs(%1 - %2) <= 1e-8 + 1e-5 * abs(%2))", ""},
    {"tril", "where(arange(len($1))[:, new] >= arange(len($1)), $1, 0)", ""},
    {"triu", "where(arange(len($1))[:, new] <= arange(len($1)), $1, 0)", ""},
    {"logspace", "pow(10.0, linspace($*))", ""},
    {"softmax", "exp(%1 - max($1)) / sum(exp(%1 - max($1)))",
     "exp(%1 - max($1, axis=$axis, keepdims=true)) / sum(exp(%1 - max($1, axis=$axis, keepdims=true)), "
     "axis=$axis, keepdims=true)"},
    {"sigmoid", "1 / (1 + exp(-%1))", "", Anywhere},
    {"relu", "maximum($1, 0)", "", Anywhere},
    {"hypot", "sqrt(%1 * %1 + %2 * %2)", "", Anywhere},
    {"deg2rad", "%1 * (pi / 180)", ""},
    {"radians", "%1 * (pi / 180)", ""},
    {"rad2deg", "%1 * (180 / pi)", ""},
    {"degrees", "%1 * (180 / pi)", ""},
    {"atomicAdd", "atomic_add(z, i, v)", "", Anywhere},
    {"atomicMin", "atomic_min(z, i, v)", "", Anywhere},
    {"atomicMax", "atomic_max(z, i, v)", "", Anywhere},
};

/// What has no short form in gk: why not, or what to do.
struct Remark {
  std::string_view name, help;
};

constexpr std::string_view kNoSort = "gk cannot sort yet: sort with NumPy and `load` the result";
constexpr std::string_view kNoSolver =
    "gk has no linear algebra beyond `@` yet: iterate with `@`, or use NumPy and `load` the result";
constexpr std::string_view kNoFft = "gk has no Fourier transforms yet";
constexpr std::string_view kNoConvolution =
    "gk has no convolution yet: add shifted slices, or write a `kernel`";
constexpr std::string_view kNoScan =
    "gk has no scans yet: `var c = copy(x); for i in 1..len(x) { c[i] .= c[i-1] + c[i] }`";
constexpr std::string_view kNoMaskRead =
    "gk has no results yet whose extent depends on values: `where(m, x, 0)` keeps the shape";
constexpr std::string_view kNoText =
    "gk reads .npy and .npz: convert the file with NumPy, then `load(\"x.npy\")`";
constexpr std::string_view kNoDType =
    "gk does not show dtypes yet: a declaration states one, as in `let x: f32[_] = …`";
constexpr std::string_view kLoop = "count in a loop: `for i in 0..len(x) { … x[i] … }`";
constexpr std::string_view kIndex =
    "the index after `over` is the thread's: `kernel k(mut z: f32[n]) over i in n { z[i] = … }`";

constexpr Remark kRemarks[] = {
    {"sort", kNoSort},
    {"argsort", kNoSort},
    {"sorted", kNoSort},
    {"unique", kNoSort},
    {"searchsorted", kNoSort},
    {"median", kNoSort},
    {"quantile", kNoSort},
    {"percentile", kNoSort},
    {"topk", kNoSort},
    {"solve", kNoSolver},
    {"inv", kNoSolver},
    {"pinv", kNoSolver},
    {"det", kNoSolver},
    {"eig", kNoSolver},
    {"eigh", kNoSolver},
    {"eigvals", kNoSolver},
    {"svd", kNoSolver},
    {"qr", kNoSolver},
    {"lu", kNoSolver},
    {"cholesky", kNoSolver},
    {"lstsq", kNoSolver},
    {"fft", kNoFft},
    {"ifft", kNoFft},
    {"rfft", kNoFft},
    {"irfft", kNoFft},
    {"fft2", kNoFft},
    {"convolve", kNoConvolution},
    {"conv", kNoConvolution},
    {"conv1d", kNoConvolution},
    {"conv2d", kNoConvolution},
    {"correlate", kNoConvolution},
    {"cumsum", kNoScan},
    {"cumprod", kNoScan},
    {"nonzero", kNoMaskRead},
    {"argwhere", kNoMaskRead},
    {"flatnonzero", kNoMaskRead},
    {"compress", kNoMaskRead},
    {"read_csv", kNoText},
    {"loadtxt", kNoText},
    {"genfromtxt", kNoText},
    {"typeof", kNoDType},
    {"eltype", kNoDType},
    {"dtype", kNoDType},
    {"type", kNoDType},
    {"enumerate", kLoop},
    {"zip", kLoop},
    {"eachindex", kLoop},
    {"map", "call the function on the array: functions of arrays go element by element"},
    {"vectorize", "call the function on the array: functions of arrays go element by element"},
    {"vmap", "call the function on the array: functions of arrays go element by element"},
    {"jit", "declare the function `captured fn`"},
    {"meshgrid", "`x[new, :]` and `y[:, new]` broadcast against each other"},
    {"squeeze", "name the shape, as in `reshape(x, 3, 4)`, or index the axis with 0"},
    {"einsum", "say it with `@`, `sum(a * b, axis=0)` and axes added with `new`"},
    {"isclose", "`assert a ~= b` compares within tolerances, `abs(a - b) <= 1e-8` by hand"},
    {"__syncthreads", "the points of a kernel do not wait for each other: make two kernels of it"},
    {"cudaDeviceSynchronize", "nothing is needed: `print`, `item` and `save` wait for the device"},
};

/// Values and types.
constexpr Remark kNames[] = {
    {"Inf", "write `inf`"},
    {"Infinity", "write `inf`"},
    {"INFINITY", "write `inf`"},
    {"NaN", "write `nan`"},
    {"NAN", "write `nan`"},
    {"PI", "write `pi`"},
    {"Pi", "write `pi`"},
    {"M_PI", "write `pi`"},
    {"\u03c0", "write `pi`"},
    {"argv", "write `args`"},
    {"newaxis", "write `new`"},
    {"int", "write `i64`"},
    {"long", "write `i64`"},
    {"uint", "write `u64`"},
    {"size_t", "write `u64`"},
    {"double", "write `f64`"},
    {"float", "write `f32` or `f64`"},
    {"half", "write `f16`"},
    {"single", "write `f32`"},
    {"bfloat16", "write `bf16`"},
    {"bool_", "write `bool`"},
    {"Bool", "write `bool`"},
    {"complex", "gk has no complex numbers yet: keep the two parts in arrays of their own"},
    {"complex64", "gk has no complex numbers yet: keep the two parts in arrays of their own"},
    {"complex128", "gk has no complex numbers yet: keep the two parts in arrays of their own"},
    {"c64", "gk has no complex numbers yet: keep the two parts in arrays of their own"},
    {"c128", "gk has no complex numbers yet: keep the two parts in arrays of their own"},
    {"null", "every name has a value; there is no empty one"},
    {"nil", "every name has a value; there is no empty one"},
    {"nothing", "every name has a value; there is no empty one"},
    {"threadIdx", kIndex},
    {"blockIdx", kIndex},
    {"blockDim", kIndex},
};

const Remark* find(const auto& table, std::string_view name) {
  const auto it =
      std::find_if(std::begin(table), std::end(table), [&](const Remark& r) { return r.name == name; });
  return it == std::end(table) ? nullptr : it;
}

/// f32 for `float32` and `Float32`, i64 for `int64` and `Int64`.
std::optional<std::string> sized_type(std::string_view name) {
  for (const auto& [word, letter] : {std::pair{"float", 'f'}, {"uint", 'u'}, {"int", 'i'}}) {
    const std::string_view w = word;
    if (name.size() <= w.size()) continue;
    std::string lower;
    for (char c : name.substr(0, w.size()))
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower != w) continue;
    std::string bits{name.substr(w.size())};
    if (bits.ends_with("_t")) bits.resize(bits.size() - 2);
    if (const std::string type = letter + bits; parse_dtype(type)) return type;
  }
  return std::nullopt;
}

constexpr std::string_view kPlaceholders[] = {"x", "y", "z", "w"};

std::string filled(std::string_view form, const std::vector<WrittenArg>& args) {
  std::string out, all, axis = "0";
  std::vector<std::string> plain;
  for (const WrittenArg& a : args) {
    all += (all.empty() ? "" : ", ") + (a.name.empty() ? "" : a.name + "=") + a.text;
    if (a.name == "axis")
      axis = a.text;
    else if (a.name.empty())
      plain.push_back(a.text);
  }
  if (args.empty()) all = kPlaceholders[0];
  for (size_t i = 0; i < form.size(); ++i) {
    const char next = i + 1 < form.size() ? form[i + 1] : ' ';
    const bool number = next >= '1' && next <= '9';
    if (form.substr(i).starts_with("$axis")) {
      out += axis;
      i += 4;
    } else if (form[i] == '$' && next == '*') {
      out += all;
      ++i;
    } else if ((form[i] == '$' || form[i] == '%') && number) {
      const auto k = static_cast<size_t>(next - '1');
      const std::string text =
          k < plain.size() ? plain[k] : std::string(kPlaceholders[std::min<size_t>(k, 3)]);
      out += form[i] == '%' ? as_operand(text) : text;
      ++i;
    } else {
      out += form[i];
    }
  }
  return out;
}

}  // namespace

std::string as_operand(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted || c == '"') continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    const bool word = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || (c & 0x80) != 0;
    if (depth == 0 && !word && c != ')' && c != ']' && c != '}') return fmt::format("({})", text);
  }
  return std::string(text);
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  const auto lower = [](std::string_view s) {
    std::string out;
    for (char c : s) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  };
  const std::string wanted = lower(name);
  // Two letters that changed places count once.
  const auto slips = [&](std::string_view c) {
    std::vector<std::vector<size_t>> d(name.size() + 1, std::vector<size_t>(c.size() + 1));
    for (size_t i = 0; i <= name.size(); ++i)
      for (size_t j = 0; j <= c.size(); ++j) {
        if (i == 0 || j == 0) {
          d[i][j] = i + j;
          continue;
        }
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (name[i - 1] != c[j - 1])});
        if (i > 1 && j > 1 && name[i - 1] == c[j - 2] && name[i - 2] == c[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    return d[name.size()][c.size()];
  };
  const size_t most = std::min<size_t>(name.size() / 3, 3);
  std::string_view best;
  size_t least = most + 1;
  for (std::string_view c : candidates) {
    if (c == name) continue;
    if (lower(c) == wanted) return c;
    if (c.size() > name.size() + most || name.size() > c.size() + most) continue;
    if (const size_t n = slips(c); n < least) {
      best = c;
      least = n;
    }
  }
  return best;
}

bool advise_call(Error& e, std::string_view name, const std::vector<WrittenArg>& args, bool in_kernel) {
  for (const Habit& h : kHabits) {
    if (h.name != name || (in_kernel && h.where == Arrays)) continue;
    const bool axis = std::any_of(args.begin(), args.end(), [](const auto& a) { return a.name == "axis"; });
    std::vector<WrittenArg> given = args;
    if (axis && h.along.empty()) std::erase_if(given, [](const WrittenArg& a) { return !a.name.empty(); });
    const std::string form = filled(axis && !h.along.empty() ? h.along : h.write, given);
    const char* along = axis && h.along.empty() ? "along the first axis it is" : "write";
    e.helps.push_back(fmt::format("{} `{}`", along, form));
    return true;
  }
  if (!in_kernel)
    if (const Remark* r = find(kRemarks, name)) return e.helps.emplace_back(r->help), true;
  const auto type = sized_type(name);
  if (type && args.size() == 1)
    return e.helps.push_back(fmt::format("write `{}({})`", *type, args[0].text)), true;
  if (args.size() == 1)
    for (const auto& [from, to] :
         {std::pair{"int", "i64"}, {"float", "f32"}, {"double", "f64"}, {"long", "i64"}})
      if (name == from) return e.helps.push_back(fmt::format("write `{}({})`", to, args[0].text)), true;
  return advise_name(e, name);
}

bool advise_name(Error& e, std::string_view name) {
  if (const auto type = sized_type(name)) return e.helps.push_back(fmt::format("write `{}`", *type)), true;
  if (const Remark* r = find(kNames, name)) return e.helps.emplace_back(r->help), true;
  return false;
}

bool is_foreign_module(std::string_view name) {
  static constexpr std::string_view kModules[] = {"np",   "numpy", "jnp", "torch",
                                                  "math", "cupy",  "cp",  "scipy"};
  return std::find(std::begin(kModules), std::end(kModules), name) != std::end(kModules);
}

}  // namespace gk::sema
