// Parse tree to AST. Owns the Builder, a visitor over the generated tree; promises to fill every field
// of the nodes in ast.h and to recurse only as deep as brackets and prefix operators nest. Not for names
// or types: `a < b < c` and literals out of range are the only rules it checks.
#pragma once

#include <antlr4-runtime.h>

#include "GkParser.h"
#include "GkParserBaseVisitor.h"
#include "compiler/syntax/parse.h"
#include "compiler/syntax/tokens.h"

namespace gk::syntax {

/// Parses the text of one f-string expression (bytes [base, base + text.size()) of the file).
/// Adds its tokens to `count`.
ExprPtr parse_fragment(std::string_view text, int32_t file, uint32_t base, std::vector<Error>& errors,
                       size_t& count);

class Builder final : public antlr::GkParserBaseVisitor {
 public:
  using P = antlr::GkParser;
  Builder(const TokenList& tokens, std::string_view text, int32_t file, uint32_t base,
          std::vector<Error>& errors, Stop& stop)
      : tokens_(tokens), text_(text), file_(file), base_(base), errors_(errors), stop_(stop) {}

  /// Throws Stopped.
  StmtPtr line(P::LineContext* c);
  ExprPtr expr(P::ExprContext* c);
  std::unique_ptr<Block> block(P::BlockContext* c);
  TypePtr type(P::TypeContext* c);

 private:
  // ---- statements (build_stmt.cpp) ----
  antlrcpp::Any visitLetStmt(P::LetStmtContext* c) override;
  antlrcpp::Any visitFnStmt(P::FnStmtContext* c) override;
  antlrcpp::Any visitKernelStmt(P::KernelStmtContext* c) override;
  antlrcpp::Any visitTypeStmt(P::TypeStmtContext* c) override;
  antlrcpp::Any visitGraphStmt(P::GraphStmtContext* c) override;
  antlrcpp::Any visitUpdateStmt(P::UpdateStmtContext* c) override;
  antlrcpp::Any visitForStmt(P::ForStmtContext* c) override;
  antlrcpp::Any visitWhileStmt(P::WhileStmtContext* c) override;
  antlrcpp::Any visitBreakStmt(P::BreakStmtContext* c) override;
  antlrcpp::Any visitContinueStmt(P::ContinueStmtContext* c) override;
  antlrcpp::Any visitReturnStmt(P::ReturnStmtContext* c) override;
  antlrcpp::Any visitImportStmt(P::ImportStmtContext* c) override;
  antlrcpp::Any visitPragmaStmt(P::PragmaStmtContext* c) override;
  antlrcpp::Any visitAssertStmt(P::AssertStmtContext* c) override;
  antlrcpp::Any visitTestStmt(P::TestStmtContext* c) override;
  antlrcpp::Any visitExpectErrorStmt(P::ExpectErrorStmtContext* c) override;
  antlrcpp::Any visitExprStmt(P::ExprStmtContext* c) override;
  StmtPtr if_statement(ExprPtr e);
  GraphNodeDef node(P::NodeContext* c);
  std::string doc(antlr4::ParserRuleContext* c) const;

  // ---- types (build_stmt.cpp) ----
  antlrcpp::Any visitNamedType(P::NamedTypeContext* c) override;
  antlrcpp::Any visitListType(P::ListTypeContext* c) override;
  antlrcpp::Any visitRecordType(P::RecordTypeContext* c) override;
  antlrcpp::Any visitTupleType(P::TupleTypeContext* c) override;
  std::vector<Param> params(P::ParamsContext* c);

  // ---- expressions (build_expr.cpp) ----
  antlrcpp::Any visitCallExpr(P::CallExprContext* c) override;
  antlrcpp::Any visitIndexExpr(P::IndexExprContext* c) override;
  antlrcpp::Any visitFieldExpr(P::FieldExprContext* c) override;
  antlrcpp::Any visitLaunchExpr(P::LaunchExprContext* c) override;
  antlrcpp::Any visitBinaryExpr(P::BinaryExprContext* c) override;
  antlrcpp::Any visitUnaryExpr(P::UnaryExprContext* c) override;
  antlrcpp::Any visitRangeExpr(P::RangeExprContext* c) override;
  antlrcpp::Any visitPipeExpr(P::PipeExprContext* c) override;
  antlrcpp::Any visitLambdaExpr(P::LambdaExprContext* c) override;
  antlrcpp::Any visitNameExpr(P::NameExprContext* c) override;
  antlrcpp::Any visitWildcardExpr(P::WildcardExprContext* c) override;
  antlrcpp::Any visitNumberExpr(P::NumberExprContext* c) override;
  antlrcpp::Any visitNumberArrayExpr(P::NumberArrayExprContext* c) override;
  antlrcpp::Any visitBoolExpr(P::BoolExprContext* c) override;
  antlrcpp::Any visitStringExpr(P::StringExprContext* c) override;
  antlrcpp::Any visitFStringExpr(P::FStringExprContext* c) override;
  antlrcpp::Any visitParenExpr(P::ParenExprContext* c) override;
  antlrcpp::Any visitArrayExpr(P::ArrayExprContext* c) override;
  antlrcpp::Any visitListTypeExpr(P::ListTypeExprContext* c) override;
  antlrcpp::Any visitIfExpr(P::IfExprContext* c) override;
  antlrcpp::Any visitCaptureExpr(P::CaptureExprContext* c) override;
  antlrcpp::Any visitBlockExpr(P::BlockExprContext* c) override;
  std::vector<Arg> args(P::ArgsContext* c);
  Arg arg(P::ArgContext* c);
  Index index(P::IndexContext* c);

  Error chained(antlr::GkParser::BinaryExprContext* last) const;

  // ---- literals (literals.cpp) ----
  void number(Expr& e, int type);
  void fstring(Expr& e, Span s);
  /// Decodes the escapes of text[begin, end) of the file.
  std::string unescape(uint32_t begin, uint32_t end);
  std::string string_value(antlr4::Token* t);

  // ---- helpers ----
  const Token& token(const antlr4::Token* t) const { return tokens_.tokens[t->getTokenIndex()]; }
  Span span(const antlr4::Token* t) const { return {file_, token(t).begin, token(t).end}; }
  Span span(antlr4::tree::TerminalNode* n) const { return span(n->getSymbol()); }
  Span span(antlr4::ParserRuleContext* c) const { return {file_, token(c->start).begin, token(c->stop).end}; }
  std::string text(Span s) const { return std::string(text_.substr(s.begin - base_, s.end - s.begin)); }
  std::string text(antlr4::tree::TerminalNode* n) const { return text(span(n)); }
  ExprPtr make(ExprKind kind, antlr4::ParserRuleContext* c) const;
  StmtPtr make(StmtKind kind, antlr4::ParserRuleContext* c) const;
  antlrcpp::Any give(ExprPtr e) {
    expr_ = std::move(e);
    return {};
  }
  antlrcpp::Any give(StmtPtr s) {
    stmt_ = std::move(s);
    return {};
  }
  antlrcpp::Any give(TypePtr t) {
    type_ = std::move(t);
    return {};
  }
  void report(Error e) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(e));
  }

  const TokenList& tokens_;
  std::string_view text_;
  int32_t file_;
  uint32_t base_;
  std::vector<Error>& errors_;
  Stop& stop_;
  // What the last visit made. left_ is the operand already built for a left-recursive expression.
  ExprPtr expr_, left_;
  StmtPtr stmt_;
  TypePtr type_;
  // The f-strings of a line: where the last one ended, and the tokens in all of them.
  uint32_t fstring_end_ = 0;
  size_t in_fstrings_ = 0;
};

}  // namespace gk::syntax
