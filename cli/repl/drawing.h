// Graphs as a terminal shows them: a line a node, with rails from those that it waits for. Owns the layout
// alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "include/gk/gk.h"

namespace gk::cli {

/// At most `width` columns; names and steps that do not fit end in "…".
std::string draw(std::string_view title, const std::vector<NodeInfo>& nodes, size_t width);
/// The same for Graphviz.
std::string dot(std::string_view title, const std::vector<NodeInfo>& nodes);
/// "1.5 KiB", "37 B".
std::string bytes_text(int64_t bytes);

}  // namespace gk::cli
