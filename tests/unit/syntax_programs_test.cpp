// The four programs of the language's description, and the trees that the rest of the compiler relies on.
#include <gtest/gtest.h>

#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::Parsed;
using testing::tree;

constexpr const char* kMlp = R"gk(# mlp.gk — 4 layers of 256, batch 16, in place
const B = 16, D = 256, L = 4
type Layer = { w: f32[D, D], b: f32[D] }
fn forward(mut hs: [f32[B, D]; L + 1], layers: [Layer; L]) {
  for i in 0..L { hs[i+1] .= maximum(hs[i] @ layers[i].w + layers[i].b, 0) }
}
var r = rng(seed=1)
let layers = list(L, _ => Layer(w = randn(mut r, f32[D, D]) / sqrt(D), b = zeros(f32[D])))
var hs = list(L + 1, _ => zeros(f32[B, D]))
var batch: pinned f32[B, D]
let e = capture { hs[0] .= batch; forward(mut hs, layers) } |> instantiate
let batches: host f32[_, B, D] = if len(args) > 0 { load(args[0]) } else { host(randn(mut r, f32[8, B, D])) }
for b in batches { batch .= b; launch e }
save("out.npy", hs[L])
test "graph equals eager" { var ref = copy(hs); forward(mut ref, layers); assert ref[L] ~= hs[L], rtol=1e-5 }
)gk";

TEST(SyntaxPrograms, mlp) {
  EXPECT_EQ(tree(kMlp), R"gk((const (B 16) (D 256) (L 4))
  (typedef Layer (record-type (w (type f32 (dims D D))) (b (type f32 (dims D)))))
  (fn forward (params (mut hs (list-type (type f32 (dims B D)) (+ L 1))) (layers (list-type (type Layer) L))) (body
    (for i (.. 0 L) (body
      (.= (index hs (+ i 1)) (call maximum (+ (@ (index hs i) (field (index layers i) w)) (field (index layers i) b)) 0))))))
  (var (r (call rng (= seed 1))))
  (let (layers (call list L (lambda (params (_)) (call Layer (= w (/ (call randn (mut r) (index f32 D D)) (call sqrt D))) (= b (call zeros (index f32 D))))))))
  (var (hs (call list (+ L 1) (lambda (params (_)) (call zeros (index f32 B D))))))
  (var (batch (pinned (type f32 (dims B D)))))
  (let (e (pipe instantiate (capture (body
    (; (.= (index hs 0) batch))
    (call forward (mut hs) layers))))))
  (let (batches (host (type f32 (dims _ B D))) (if (> (call len args) 0) (then
    (call load (index args 0))) (else
    (call host (call randn (mut r) (index f32 8 B D)))))))
  (for b batches (body
    (; (.= batch b))
    (launch e)))
  (call save "out.npy" (index hs L))
  (test "graph equals eager" (body
    (; (var (ref (call copy hs))))
    (; (call forward (mut ref) layers))
    (assert (~= (index ref L) (index hs L)) (= rtol 1e-05)))))gk");
}

constexpr const char* kLorenz = R"gk(# lorenz.gk — RK4, 10 steps, 4096 trajectories
const N = 4096, STEPS = 10
const DT: f32 = 0.01
type S = { x: f32[N], y: f32[N], z: f32[N] }
fn lorenz(s: S, sigma = 10.0, rho = 28.0, beta = 8/3) -> S =
  S(x = sigma * (s.y - s.x), y = s.x * (rho - s.z) - s.y, z = s.x * s.y - beta * s.z)
fn rk4(s: S, h: f32) -> S {
  let k1 = lorenz(s)
  let k2 = lorenz(s + h/2 * k1)
  let k3 = lorenz(s + h/2 * k2)
  let k4 = lorenz(s + h * k3)
  s + h/6 * (k1 + 2*k2 + 2*k3 + k4)
}
var s = S(x = linspace(-1, 1, N), y = zeros(f32[N]), z = full(f32[N], 25))
let e = capture { for _ in 0..STEPS { s .= rk4(s, DT) } } |> instantiate
launch(times=1000) e
print(f"mean z = {mean(s.z):.4f}")
)gk";

TEST(SyntaxPrograms, lorenz) {
  EXPECT_EQ(tree(kLorenz), R"gk((const (N 4096) (STEPS 10))
  (const (DT (type f32) 0.01))
  (typedef S (record-type (x (type f32 (dims N))) (y (type f32 (dims N))) (z (type f32 (dims N)))))
  (fn lorenz (params (s (type S)) (sigma (default 10.0)) (rho (default 28.0)) (beta (default (/ 8 3)))) (result (type S)) (call S (= x (* sigma (- (field s y) (field s x)))) (= y (- (* (field s x) (- rho (field s z))) (field s y))) (= z (- (* (field s x) (field s y)) (* beta (field s z))))))
  (fn rk4 (params (s (type S)) (h (type f32))) (result (type S)) (body
    (let (k1 (call lorenz s)))
    (let (k2 (call lorenz (+ s (* (/ h 2) k1)))))
    (let (k3 (call lorenz (+ s (* (/ h 2) k2)))))
    (let (k4 (call lorenz (+ s (* h k3)))))
    (+ s (* (/ h 6) (+ (+ (+ k1 (* 2 k2)) (* 2 k3)) k4)))))
  (var (s (call S (= x (call linspace (- 1) 1 N)) (= y (call zeros (index f32 N))) (= z (call full (index f32 N) 25)))))
  (let (e (pipe instantiate (capture (body
    (for _ (.. 0 STEPS) (body
      (.= s (call rk4 s DT)))))))))
  (launch (options (= times 1000)) e)
  (call print (f "mean z = " ((call mean (field s z)) : ".4f") "")))gk");
}

constexpr const char* kBranches = R"gk(# branches.gk — two branches, a join, then the join retargeted
const N = 1_000_000
kernel combine(mut z: f32[n], x: f32[n], y: f32[n]) over i in n { z[i] = x[i] * x[i] + y[i] }
var x = linspace(0, 1, N), y = linspace(0, 2, N)
var z = zeros(f32[N]), z2 = zeros(f32[N])
graph g {
  node a { x .= sin(x) }
  node b { y .= cos(y) }
  node c after (a, b) { launch(threads=256) combine(mut z, x, y) }
}
let e = instantiate(g)
launch e
update e.c { launch(threads=256) combine(mut z2, x, y) }
launch e
assert any(z2 != 0)
expect_error E0701 {
  graph bad { node a { x .= sin(x) }  node b { y .= x + 1 }  node c after (a) { z .= y } }
}
)gk";

TEST(SyntaxPrograms, branches) {
  EXPECT_EQ(tree(kBranches), R"gk((const (N 1000000))
  (kernel combine (params (mut z (type f32 (dims n))) (x (type f32 (dims n))) (y (type f32 (dims n)))) (over (i n)) (body
    (= (index z i) (+ (* (index x i) (index x i)) (index y i)))))
  (var (x (call linspace 0 1 N)) (y (call linspace 0 2 N)))
  (var (z (call zeros (index f32 N))) (z2 (call zeros (index f32 N))))
  (graph g
    (node a (body
      (.= x (call sin x))))
    (node b (body
      (.= y (call cos y))))
    (node c (after a b) (body
      (launch (options (= threads 256)) (call combine (mut z) x y)))))
  (let (e (call instantiate g)))
  (launch e)
  (update (field e c) (body
    (launch (options (= threads 256)) (call combine (mut z2) x y))))
  (launch e)
  (assert (call any (!= z2 0)))
  (expect_error E0701 (body
    (graph bad
      (node a (body
        (.= x (call sin x))))
      (node b (body
        (.= y (+ x 1))))
      (node c (after a) (body
        (.= z y)))))))gk");
}

constexpr const char* kAllocating =
    R"gk(# allocating.gk — the chain that runs eagerly but could not be captured: 50 dead temporaries of 16 MiB
fn step(x: f32[N]) -> f32[N] { var y = x; for _ in 0..50 { y = y * 0.99 + 0.01 }; y }
let x = ones(f32[4 * 2**20])
var out = zeros_like(x)
let e = capture { out .= step(x) } |> instantiate
launch e                       # under --memory-limit=400MiB, with fusion and with `pragma fuse off`
)gk";

TEST(SyntaxPrograms, allocating) {
  EXPECT_EQ(tree(kAllocating),
            R"gk((fn step (params (x (type f32 (dims N)))) (result (type f32 (dims N))) (body
    (; (var (y x)))
    (; (for _ (.. 0 50) (body
      (= y (+ (* y 0.99) 0.01)))))
    y))
  (let (x (call ones (index f32 (* 4 (** 2 20))))))
  (var (out (call zeros_like x)))
  (let (e (pipe instantiate (capture (body
    (.= out (call step x)))))))
  (launch e))gk");
}

TEST(SyntaxPrograms, every_span_lies_inside_its_text) {
  for (const char* text : {kMlp, kLorenz, kBranches, kAllocating}) {
    Parsed p(text);
    uint32_t last = 0;
    for (const StmtPtr& s : p.result.module.stmts) {
      EXPECT_GE(s->span.begin, last);
      EXPECT_LT(s->span.begin, s->span.end);
      last = s->span.end;
    }
    EXPECT_LE(last, p.result.module.span.end);
  }
}

}  // namespace
}  // namespace gk::syntax
