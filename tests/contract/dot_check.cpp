#include "tests/contract/dot_check.h"

#include <cctype>
#include <map>
#include <stdexcept>

namespace gk::contract_test {
namespace {

struct Token {
  enum class Kind { Id, Text, Sign, End } kind = Kind::End;
  std::string text;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) { next(); }

  void graph(Dot& dot) {
    if (id() != "digraph") throw std::runtime_error("not a digraph");
    if (token_.kind != Token::Kind::Sign) dot.name = id();
    sign("{");
    while (!is("}")) statement(dot);
    sign("}");
    if (token_.kind != Token::Kind::End) throw std::runtime_error("something follows the graph");
  }

 private:
  void statement(Dot& dot) {
    const bool bare = token_.kind == Token::Kind::Id;
    const std::string first = id();
    if (is("=")) {
      next();
      id();
    } else if (is("->")) {
      next();
      dot.edges.emplace_back(first, id());
      attributes();
    } else {
      const auto named = attributes();
      if (!bare || (first != "node" && first != "edge" && first != "graph")) {
        if (!dot.nodes.insert(first).second) throw std::runtime_error("declared twice: " + first);
        if (const auto label = named.find("label"); label != named.end()) dot.labels.insert(label->second);
      }
    }
    if (is(";")) next();
  }
  std::map<std::string, std::string> attributes() {
    std::map<std::string, std::string> named;
    if (!is("[")) return named;
    next();
    while (!is("]")) {
      const std::string name = id();
      sign("=");
      named[name] = id();
      if (is(",") || is(";")) next();
    }
    next();
    return named;
  }
  bool is(std::string_view s) const { return token_.kind == Token::Kind::Sign && token_.text == s; }
  void sign(std::string_view s) {
    if (!is(s)) throw std::runtime_error("expected " + std::string(s) + ", not " + token_.text);
    next();
  }
  std::string id() {
    if (token_.kind != Token::Kind::Id && token_.kind != Token::Kind::Text)
      throw std::runtime_error("expected a name, not " + token_.text);
    std::string text = token_.text;
    next();
    return text;
  }
  char take() {
    if (rest_.empty()) throw std::runtime_error("it ends early");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void next() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) take();
    token_ = {};
    if (rest_.empty()) return;
    const char c = take();
    if (c == '"') {
      token_.kind = Token::Kind::Text;
      for (char t = take(); t != '"'; t = take()) {
        if (t == '\\') {
          t = take();
          if (t == 'n') t = '\n';
        }
        token_.text += t;
      }
      return;
    }
    token_.text = c;
    const auto in_name = [](char t) { return std::isalnum(static_cast<unsigned char>(t)) || t == '_'; };
    if (in_name(c)) {
      token_.kind = Token::Kind::Id;
      while (!rest_.empty() && in_name(rest_.front())) token_.text += take();
      return;
    }
    token_.kind = Token::Kind::Sign;
    if (c == '-' && !rest_.empty() && rest_.front() == '>') token_.text += take();
  }

  std::string_view rest_;
  Token token_;
};

}  // namespace

Dot parse_dot(std::string_view text) {
  Dot dot;
  try {
    Reader(text).graph(dot);
  } catch (const std::exception& e) {
    dot.error = e.what();
  }
  return dot;
}

}  // namespace gk::contract_test
