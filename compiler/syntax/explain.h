// The rows behind `--explain`. Owns the record type and the tables' names; explain.cpp puts the text
// together. Promises one row a code, in order, with an example that is wrong and one that is right.
#pragma once

#include <span>

namespace gk::syntax {

struct Explanation {
  const char* code;
  const char* title;
  const char* why;    // one paragraph
  const char* wrong;  // gk text, or a command line for E05xx, E06xx and E11xx
  const char* right;
};

std::span<const Explanation> language_explanations();  // E01xx to E04xx
std::span<const Explanation> machine_explanations();   // E05xx to E11xx

}  // namespace gk::syntax
