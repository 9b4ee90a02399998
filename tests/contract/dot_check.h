// A reader of DOT as graphs are written in it: directed graphs of node, edge and attribute statements. Owns
// what it read. Promises an error for what Graphviz would refuse. Not for ports, subgraphs or HTML.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gk::contract_test {

struct Dot {
  std::string error;  // "" where it is valid
  std::string name;
  std::set<std::string> nodes;   // declared
  std::set<std::string> labels;  // of nodes, unquoted
  std::vector<std::pair<std::string, std::string>> edges;
};
Dot parse_dot(std::string_view text);

}  // namespace gk::contract_test
