// gk in a C++ program: engines, contexts, arrays, functions and graphs. Everything of the embedding interface
// but the C one (gk/gk_c.h). Bad programs, faults of the device and misuse come back as gk::Error, or from
// the try_ forms as gk::Result; nothing aborts the host program, and destructors never throw.
//
//   gk::Engine engine{{.device = "cuda:0"}};
//   gk::Context ctx{engine};
//   auto mod = ctx.compile("m.gk", "fn f(x: f32[n], a: f32) = a * x + 1");
//   auto f = mod.fn<gk::Tensor(gk::Tensor, float)>("f");
//   gk::Tensor x = ctx.full(gk::f32, {1024}, 2.0), y;
//   gk::Graph g = ctx.capture([&] { y = f(x, 3.0f); });
//   gk::Exec e = g.instantiate();
//   e.launch(ctx);
//   std::vector<float> host = y.to_host<float>(ctx);
#pragma once

#include "gk/context.h"
#include "gk/dlpack.h"
#include "gk/engine.h"
#include "gk/error.h"
#include "gk/function.h"
#include "gk/graph.h"
#include "gk/tensor.h"
#include "gk/value.h"
