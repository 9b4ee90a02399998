// What kinds of tokens there are: the classes that layout and messages need, and their names.
#include <antlr4-runtime.h>

#include "GkLexer.h"
#include "compiler/syntax/tokens.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using L = antlr::GkLexer;

}  // namespace

bool is_contextual(int t) {
  switch (t) {
    case L::CAPTURED:
    case L::KERNEL:
    case L::OVER:
    case L::TYPE:
    case L::GRAPH:
    case L::NODE:
    case L::AFTER:
    case L::UPDATE:
    case L::AS:
    case L::TEST:
    case L::BENCH: return true;
    default: return false;
  }
}

bool is_word(int t) { return t == L::IDENT || is_contextual(t); }

bool starts_only_statements(int t) {
  switch (t) {
    case L::LET:
    case L::VAR:
    case L::CONST:
    case L::FN:
    case L::FOR:
    case L::WHILE:
    case L::RETURN:
    case L::BREAK:
    case L::CONTINUE:
    case L::IMPORT:
    case L::PRAGMA:
    case L::ASSERT:
    case L::EXPECT_ERROR: return true;
    default: return false;
  }
}

bool is_terminator(int t) { return t == L::NEWLINE || t == L::SEMI; }

bool ends_operand(int t) {
  switch (t) {
    case L::IDENT:
    case L::RPAREN:
    case L::RBRACK:
    case L::RBRACE:
    case L::STRING:
    case L::FSTRING:
    case L::INT:
    case L::FLOAT:
    case L::NUMBER_ARRAY:
    case L::UNDERSCORE: return true;
    default: return false;
  }
}

bool continues_after(int type) {
  switch (type) {
    case L::PLUS:
    case L::MINUS:
    case L::STAR:
    case L::SLASH:
    case L::FLOORDIV:
    case L::PERCENT:
    case L::AT:
    case L::POW:
    case L::AMP:
    case L::BAR:
    case L::CARET:
    case L::TILDE:
    case L::SHL:
    case L::SHR:
    case L::EQ:
    case L::NE:
    case L::LT:
    case L::LE:
    case L::GT:
    case L::GE:
    case L::APPROX:
    case L::ASSIGN:
    case L::ADD_ASSIGN:
    case L::SUB_ASSIGN:
    case L::MUL_ASSIGN:
    case L::DIV_ASSIGN:
    case L::ASSIGN_ELEMS:
    case L::ADD_ELEMS:
    case L::SUB_ELEMS:
    case L::MUL_ELEMS:
    case L::DIV_ELEMS:
    case L::COMMA:
    case L::COLON:
    case L::ARROW:
    case L::FATARROW:
    case L::PIPE:
    case L::DOTDOT:
    case L::AND:
    case L::OR:
    case L::NOT:
    case L::BAD_AND:
    case L::BAD_OR:
    case L::BAD_NOT:
    case L::IN:
    case L::OVER:
    case L::AFTER:
    case L::ELSE: return true;
    default: return false;
  }
}

bool starts_expression(int type) {
  switch (type) {
    case L::IDENT:
    case L::UNDERSCORE:
    case L::INT:
    case L::FLOAT:
    case L::NUMBER_ARRAY:
    case L::STRING:
    case L::FSTRING:
    case L::TRUE:
    case L::FALSE:
    case L::LPAREN:
    case L::LAMBDA_LPAREN:
    case L::LAMBDA_NAME:
    case L::IF:
    case L::CAPTURE:
    case L::LAUNCH:
    case L::LAUNCH_WITH: return true;
    default: return false;
  }
}

std::string describe(int type) {
  switch (type) {
    case -1: return "the end of the text";
    case L::NEWLINE: return "the end of the line";
    case L::SEMI: return "`;`";
    case L::IDENT: return "a name";
    case L::INT:
    case L::FLOAT: return "a number";
    case L::STRING:
    case L::FSTRING: return "a string";
    case L::NUMBER_ARRAY: return "an array of numbers";
    case L::LIST_LBRACK: return "`[`";
    case L::LAMBDA_LPAREN: return "`(`";
    case L::LAMBDA_NAME: return "a name";
    case L::LAUNCH_WITH: return "`launch`";
    case L::REBIND_LBRACE: return "`{`";
    case L::PLACEMENT: return "`pinned` or `host`";
    default: break;
  }
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out;
    const antlr4::dfa::Vocabulary vocabulary = L(nullptr).getVocabulary();
    for (size_t t = 0; t <= vocabulary.getMaxTokenType(); ++t) {
      std::string literal = vocabulary.getLiteralName(t);
      if (literal.size() > 2) literal = "`" + literal.substr(1, literal.size() - 2) + "`";
      out.push_back(literal);
    }
    return out;
  }();
  return type >= 0 && static_cast<size_t>(type) < kNames.size() ? kNames[static_cast<size_t>(type)] : "";
}

std::string describe(const Token& t, std::string_view text, uint32_t base) {
  if (t.type == -1) return "the end of the text";
  if (t.type == L::NEWLINE) return "the end of the line";
  if (t.type == L::STRING || t.type == L::FSTRING) return "a string";
  if (t.type == L::NUMBER_ARRAY) return "an array of numbers";
  bool keyword = t.type >= L::LET && t.type <= L::NEW;
  return fmt::format("{}`{}`", keyword ? "the keyword " : "", text.substr(t.begin - base, t.end - t.begin));
}

}  // namespace gk::syntax
