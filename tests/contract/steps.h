// How many instructions a piece of code executes on its thread, outside the kernel: by single steps of the
// processor, so that constant work can be shown without a clock. Owns nothing.
#pragma once

#include <cstdint>
#include <functional>

namespace gk::contract_test {

/// Calls f and counts its steps; -1 where they cannot be counted: another processor, or a sanitizer that
/// keeps signals back. It takes some microseconds a step.
int64_t count_steps(const std::function<void()>& f);

}  // namespace gk::contract_test
