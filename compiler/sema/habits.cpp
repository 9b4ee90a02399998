#include "compiler/sema/habits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/sema/habit_forms.h"

namespace gk::sema {
namespace {

using enum Where;

/// Of several forms of one name the first that fits is said.
constexpr Habit kHabits[] = {
    // products
    {"dot", "x y", "%1 @ %2"},
    {"mm", "x y", "%1 @ %2"},
    {"bmm", "x y", "%1 @ %2"},
    {"inner", "x:2 y", "%1 @ transpose($2)"},
    {"inner", "x y", "%1 @ %2"},
    {"vdot", "x y", "sum(%1 * %2)"},
    {"identity", "n", "eye($1)"},
    {"identity", "n dtype", "eye($1, dtype=$2)"},
    // arithmetic that has an operator
    {"add", "x y", "%1 + %2", Anywhere},
    {"subtract", "x y", "%1 - %2", Anywhere},
    {"multiply", "x y", "%1 * %2", Anywhere},
    {"divide", "x y", "%1 / %2", Anywhere},
    {"true_divide", "x y", "%1 / %2", Anywhere},
    {"floor_divide", "x y", "%1 // %2", Anywhere},
    {"fld", "x y", "%1 // %2", Anywhere},
    {"mod", "x y", "%1 % %2", Anywhere},
    {"remainder", "x y", "%1 % %2", Anywhere},
    {"negative", "x", "-%1", Anywhere},
    {"logical_and", "x y", "%1 & %2", Anywhere},
    {"logical_or", "x y", "%1 | %2", Anywhere},
    {"logical_xor", "x y", "%1 ^ %2", Anywhere},
    {"logical_not", "x", "~%1", Anywhere},
    {"bitwise_and", "x y", "%1 & %2", Anywhere},
    {"bitwise_or", "x y", "%1 | %2", Anywhere},
    {"bitwise_xor", "x y", "%1 ^ %2", Anywhere},
    {"bitwise_not", "x", "~%1", Anywhere},
    {"invert", "x", "~%1", Anywhere},
    {"left_shift", "x y", "%1 << %2", Anywhere},
    {"right_shift", "x y", "%1 >> %2", Anywhere},
    {"equal", "x y", "%1 == %2", Anywhere},
    {"not_equal", "x y", "%1 != %2", Anywhere},
    {"less", "x y", "%1 < %2", Anywhere},
    {"less_equal", "x y", "%1 <= %2", Anywhere},
    {"greater", "x y", "%1 > %2", Anywhere},
    {"greater_equal", "x y", "%1 >= %2", Anywhere},
    // other names
    {"absolute", "x", "abs($1)", Anywhere},
    {"fabs", "x", "abs($1)", Anywhere},
    {"arcsin", "x", "asin($1)", Anywhere},
    {"arccos", "x", "acos($1)", Anywhere},
    {"arctan", "x", "atan($1)", Anywhere},
    {"arctan2", "y x", "atan2($1, $2)", Anywhere},
    {"arcsinh", "x", "asinh($1)", Anywhere},
    {"arccosh", "x", "acosh($1)", Anywhere},
    {"arctanh", "x", "atanh($1)", Anywhere},
    {"power", "x y", "pow($1, $2)", Anywhere},
    {"fmax", "x y", "maximum($1, $2)", Anywhere},
    {"fmin", "x y", "minimum($1, $2)", Anywhere},
    {"ln", "x", "log($1)", Anywhere},
    {"rint", "x", "round($1)", Anywhere},
    {"clamp", "x min max", "clip($1, $2, $3)"},
    {"clamp", "x min", "maximum($1, $2)"},
    {"clamp", "x max", "minimum($1, $2)"},
    {"ifelse", "c x y", "where($1, $2, $3)", Anywhere},
    {"abs2", "x", "square($1)", Anywhere},
    {"amax", "x axis? keepdims?", "max($*)"},
    {"amin", "x axis? keepdims?", "min($*)"},
    {"average", "x axis? keepdims?", "mean($*)"},
    {"average", "x .weights", "sum(%1 * %2) / sum($2)"},
    {"concatenate", "x axis?", "concat($*)"},
    {"cat", "x axis?", "concat($*)"},
    {"vcat", "*", "concat([$*])"},
    {"hstack", "x", "concat($1, axis=-1)"},
    {"column_stack", "x", "stack($1, axis=1)"},
    {"append", "x:1 y:0", "concat([$1, [$2]])"},
    {"append", "x:1 y:1", "concat([$1, $2])"},
    {"append", "x y axis", "concat([$1, $2], axis=$3)"},
    {"permute", "x axes", "transpose($1, $2)"},
    {"permute", "x a:0 b:0", "transpose($1, ($2, $3))"},
    {"permute", "x a:0 b:0 c:0", "transpose($1, ($2, $3, $4))"},
    {"permutedims", "x", "transpose($1)"},
    {"permutedims", "x axes", "transpose($1, ^2)"},
    {"length", "x", "len($1)"},
    {"ndims", "x", "ndim($1)"},
    {"println", "*", "print($*)"},
    {"empty_like", "x", "zeros_like($1)"},
    {"similar", "x", "zeros_like($1)"},
    {"cpu", "x", "host($1)"},
    {"cuda", "x", "device($1)"},
    {"astype", "x dtype", "$2($1)"},
    {"array", "x", "$1"},
    {"array", "x dtype", "$2($1)"},
    {"asarray", "x", "$1"},
    {"asarray", "x dtype", "$2($1)"},
    {"tensor", "x", "$1"},
    {"tensor", "x dtype", "$2($1)"},
    {"range", "*", "arange($*)"},
    {"str", "x", "f\"{$1}\""},
    {"view", "*", "reshape($*)"},
    // said with what there is
    {"norm", "x", "vector_norm($1)"},
    {"norm", "x:1 ord=1", "vector_norm($1, ord=1)"},
    {"norm", "x:1 ord=2", "vector_norm($1)"},
    {"norm", "x .axis", "vector_norm($1, axis=$2)"},
    {"norm", "x .axis .keepdims=true", "vector_norm($1, axis=$2, keepdims=true)"},
    {"cumulative_sum", "x axis?", "cumsum($*)"},
    {"cumulative_prod", "x axis?", "cumprod($*)"},
    {"flipud", "x", "%1[::-1]"},
    {"reverse", "x:1", "%1[::-1]"},
    {"reverse", "x:2", "%1[::-1, ::-1]"},
    {"fliplr", "x", "%1[:, ::-1]"},
    {"ravel", "x", "reshape($1, -1)"},
    {"flatten", "x", "reshape($1, -1)"},
    {"vec", "x", "reshape($1, -1)"},
    {"unsqueeze", "x axis=0", "%1[new]"},
    {"unsqueeze", "x axis=1", "%1[:, new]"},
    {"unsqueeze", "x axis=2", "%1[:, :, new]"},
    {"unsqueeze", "x axis=-1", "%1[..., new]"},
    {"tile", "x:1 n:0", "concat(list($2, _ => $1))"},
    {"tile", "x:2 n:0", "concat(list($2, _ => $1), axis=1)"},
    {"trapezoid", "y:1", "sum(%1[1:] + %1[:-1]) / 2"},
    {"trapezoid", "y:1 x:1", "sum((%1[1:] + %1[:-1]) * (%2[1:] - %2[:-1])) / 2"},
    {"trapezoid", "y:1 .dx", "sum(%1[1:] + %1[:-1]) / 2 * %2"},
    {"trapz", "y:1", "sum(%1[1:] + %1[:-1]) / 2"},
    {"trapz", "y:1 x:1", "sum((%1[1:] + %1[:-1]) * (%2[1:] - %2[:-1])) / 2"},
    {"trapz", "y:1 .dx", "sum(%1[1:] + %1[:-1]) / 2 * %2"},
    {"logspace", "*", "pow(10.0, linspace($*))"},
    {"deg2rad", "x", "radians($1)"},
    {"rad2deg", "x", "degrees($1)"},
    {"atomicAdd", "*", "atomic_add(z, i, v)", Anywhere},
    {"atomicMin", "*", "atomic_min(z, i, v)", Anywhere},
    {"atomicMax", "*", "atomic_max(z, i, v)", Anywhere},
};

/// What has no short form in gk: why not, or what to do.
struct Remark {
  std::string_view name, help;
};

constexpr std::string_view kNoForm =
    "gk has no function for a call with these arguments: say it with arithmetic, reductions and slices";
constexpr std::string_view kNoSort = "gk cannot sort yet: sort with NumPy and `load` the result";
constexpr std::string_view kNoSolver =
    "gk has no linear algebra beyond `@` yet: iterate with `@`, or use NumPy and `load` the result";
constexpr std::string_view kNoFft = "gk has no Fourier transforms yet";
constexpr std::string_view kNoConvolution =
    "gk has no convolution yet: add shifted slices, or write a `kernel`";
constexpr std::string_view kNoScan =
    "gk has no running extremes yet: `var c = copy(x); for i in 1..len(x) { c[i] .= maximum(c[i-1], c[i]) }`";
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
    {"cummax", kNoScan},
    {"cummin", kNoScan},
    {"convolve", kNoConvolution},
    {"conv", kNoConvolution},
    {"conv1d", kNoConvolution},
    {"conv2d", kNoConvolution},
    {"correlate", kNoConvolution},
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
    {"einsum", "say it with `@`, `sum(a * b, axis=0)` and axes added with `new`"},
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
    {"exit", "a program ends at its end; in the REPL there are `:quit` and Ctrl-D"},
    {"quit", "a program ends at its end; in the REPL there are `:quit` and Ctrl-D"},
    {"help", "in the REPL `?name` and `:help` tell more, else `gkrun --builtins`"},
    {"dir", "in the REPL `:vars` lists the names"},
    {"who", "in the REPL `:vars` lists the names"},
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
  bool known = false;
  for (const Habit& h : kHabits) {
    if (h.name != name || (in_kernel && h.where == Arrays)) continue;
    known = true;
    if (const auto form = form_of(h, args)) return e.helps.push_back(fmt::format("write `{}`", *form)), true;
  }
  if (known && !in_kernel) return e.helps.emplace_back(kNoForm), true;
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
