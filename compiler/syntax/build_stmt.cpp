#include <algorithm>
#include <cctype>

#include "compiler/syntax/build.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

struct AssignForm {
  bool elementwise;
  AssignOp op;
};

AssignForm assign_form(size_t type) {
  switch (type) {
    case P::ADD_ASSIGN: return {false, AssignOp::Add};
    case P::SUB_ASSIGN: return {false, AssignOp::Sub};
    case P::MUL_ASSIGN: return {false, AssignOp::Mul};
    case P::DIV_ASSIGN: return {false, AssignOp::Div};
    case P::ASSIGN_ELEMS: return {true, AssignOp::Set};
    case P::ADD_ELEMS: return {true, AssignOp::Add};
    case P::SUB_ELEMS: return {true, AssignOp::Sub};
    case P::MUL_ELEMS: return {true, AssignOp::Mul};
    case P::DIV_ELEMS: return {true, AssignOp::Div};
    default: return {false, AssignOp::Set};
  }
}

}  // namespace

StmtPtr Builder::make(StmtKind kind, antlr4::ParserRuleContext* c) const {
  auto s = std::make_unique<Stmt>();
  s->kind = kind;
  s->span = span(c);
  return s;
}

std::string Builder::doc(antlr4::ParserRuleContext* c) const {
  auto found = tokens_.docs.find(c->start->getTokenIndex());
  return found == tokens_.docs.end() ? std::string() : found->second;
}

StmtPtr Builder::line(P::LineContext* c) {
  if (stop_.wanted()) throw Stopped{};
  if (c->stmt() == nullptr) return nullptr;
  c->stmt()->accept(this);
  StmtPtr s = std::move(stmt_);
  s->muted = c->end->getType() == P::SEMI;
  return s;
}

std::unique_ptr<Block> Builder::block(P::BlockContext* c) {
  auto b = std::make_unique<Block>();
  b->span = span(c);
  for (P::LineContext* l : c->line())
    if (StmtPtr s = line(l)) b->stmts.push_back(std::move(s));
  return b;
}

// ---- definitions ---------------------------------------------------------------------------------

antlrcpp::Any Builder::visitLetStmt(P::LetStmtContext* c) {
  StmtPtr s = make(StmtKind::Let, c);
  switch (c->kind->getType()) {
    case P::LET: s->bind = BindKind::Let; break;
    case P::VAR: s->bind = BindKind::Var; break;
    default: s->bind = BindKind::Const; break;
  }
  for (P::BindingContext* b : c->binding()) {
    Binding out;
    out.span = span(b);
    out.name = text(b->IDENT());
    out.name_span = span(b->IDENT());
    out.type = type(b->type());
    out.init = expr(b->expr());
    s->bindings.push_back(std::move(out));
  }
  return give(std::move(s));
}

std::vector<Param> Builder::params(P::ParamsContext* c) {
  std::vector<Param> out;
  if (c == nullptr) return out;
  for (P::ParamContext* p : c->param()) {
    Param param;
    param.span = span(p);
    param.name = text(span(p->name()));
    param.is_mut = p->MUT() != nullptr;
    param.type = type(p->type());
    param.fallback = expr(p->expr());
    out.push_back(std::move(param));
  }
  return out;
}

antlrcpp::Any Builder::visitFnStmt(P::FnStmtContext* c) {
  auto fn = std::make_shared<FnDef>();
  fn->name = text(c->IDENT());
  fn->name_span = span(c->IDENT());
  fn->doc = doc(c);
  fn->captured = c->CAPTURED() != nullptr;
  fn->params = params(c->params());
  fn->result = type(c->type());
  fn->expr = expr(c->expr());
  if (c->block() != nullptr) fn->body = block(c->block());
  StmtPtr s = make(StmtKind::Fn, c);
  s->name = fn->name;
  s->name_span = fn->name_span;
  s->doc = fn->doc;
  s->fn = std::move(fn);
  return give(std::move(s));
}

antlrcpp::Any Builder::visitKernelStmt(P::KernelStmtContext* c) {
  auto kernel = std::make_shared<KernelDef>();
  kernel->name = text(c->IDENT());
  kernel->name_span = span(c->IDENT());
  kernel->doc = doc(c);
  kernel->params = params(c->params());
  for (antlr4::tree::TerminalNode* n : c->indexNames()->IDENT()) {
    kernel->index_names.push_back(text(n));
    kernel->index_spans.push_back(span(n));
  }
  ExprPtr extents = expr(c->expr());
  if (extents->kind == ExprKind::TupleLit && c->indexNames()->LPAREN() != nullptr)
    kernel->extents = std::move(extents->elements);
  else
    kernel->extents.push_back(std::move(extents));
  if (kernel->extents.size() != kernel->index_names.size())
    report(syntax_error("E0106", "a kernel needs one extent for each index", span(c->expr()))
               .mark(std::to_string(kernel->extents.size()) + " here")
               .label(span(c->indexNames()), std::to_string(kernel->index_names.size()) + " here"));
  kernel->body = block(c->block());
  StmtPtr s = make(StmtKind::Kernel, c);
  s->name = kernel->name;
  s->name_span = kernel->name_span;
  s->doc = kernel->doc;
  s->kernel = std::move(kernel);
  return give(std::move(s));
}

antlrcpp::Any Builder::visitTypeStmt(P::TypeStmtContext* c) {
  StmtPtr s = make(StmtKind::TypeDef, c);
  s->name = text(c->IDENT());
  s->name_span = span(c->IDENT());
  s->doc = doc(c);
  s->type = type(c->type());
  return give(std::move(s));
}

GraphNodeDef Builder::node(P::NodeContext* c) {
  GraphNodeDef n;
  n.span = span(c);
  n.name = text(c->IDENT(0));
  n.name_span = span(c->IDENT(0));
  n.has_after = c->AFTER() != nullptr;
  std::vector<antlr4::tree::TerminalNode*> names = c->IDENT();
  for (size_t i = 1; i < names.size(); ++i) {
    n.after.push_back(text(names[i]));
    n.after_spans.push_back(span(names[i]));
  }
  n.body = block(c->block());
  return n;
}

antlrcpp::Any Builder::visitGraphStmt(P::GraphStmtContext* c) {
  StmtPtr s = make(StmtKind::Graph, c);
  s->name = text(c->IDENT());
  s->name_span = span(c->IDENT());
  s->doc = doc(c);
  for (P::NodeLineContext* l : c->nodeLine())
    if (l->node() != nullptr) s->nodes.push_back(node(l->node()));
  return give(std::move(s));
}

antlrcpp::Any Builder::visitUpdateStmt(P::UpdateStmtContext* c) {
  StmtPtr s = make(StmtKind::Update, c);
  s->target = expr(c->expr());
  if (c->block() != nullptr) s->body = block(c->block());
  for (P::RebindItemContext* item : c->rebindItem()) {
    P::RebindContext* r = item->rebind();
    if (r == nullptr) continue;
    Rebind rebind;
    rebind.span = span(r);
    rebind.from = expr(r->expr(0));
    rebind.to = expr(r->expr(1));
    s->rebinds.push_back(std::move(rebind));
  }
  return give(std::move(s));
}

// ---- control flow --------------------------------------------------------------------------------

antlrcpp::Any Builder::visitForStmt(P::ForStmtContext* c) {
  StmtPtr s = make(StmtKind::For, c);
  s->name_span = span(c->name());
  s->name = text(s->name_span);
  s->rhs = expr(c->expr());
  s->body = block(c->block());
  return give(std::move(s));
}

antlrcpp::Any Builder::visitWhileStmt(P::WhileStmtContext* c) {
  StmtPtr s = make(StmtKind::While, c);
  s->rhs = expr(c->expr());
  s->body = block(c->block());
  return give(std::move(s));
}

antlrcpp::Any Builder::visitBreakStmt(P::BreakStmtContext* c) { return give(make(StmtKind::Break, c)); }
antlrcpp::Any Builder::visitContinueStmt(P::ContinueStmtContext* c) {
  return give(make(StmtKind::Continue, c));
}

antlrcpp::Any Builder::visitReturnStmt(P::ReturnStmtContext* c) {
  StmtPtr s = make(StmtKind::Return, c);
  s->rhs = expr(c->expr());
  return give(std::move(s));
}

StmtPtr Builder::if_statement(ExprPtr e) {
  auto s = std::make_unique<Stmt>();
  s->kind = StmtKind::IfStmt;
  s->span = e->span;
  s->rhs = std::move(e->lhs);
  s->body = std::move(e->body);
  s->else_body = std::move(e->else_body);
  if (e->else_if != nullptr) s->else_if = if_statement(std::move(e->else_if));
  return s;
}

antlrcpp::Any Builder::visitExprStmt(P::ExprStmtContext* c) {
  ExprPtr left = expr(c->expr(0));
  if (c->assignOp() == nullptr) {
    // A parenthesised `if` stays an expression.
    if (left->kind == ExprKind::If && dynamic_cast<P::IfExprContext*>(c->expr(0)) != nullptr)
      return give(if_statement(std::move(left)));
    StmtPtr s = make(StmtKind::ExprStmt, c);
    s->rhs = std::move(left);
    return give(std::move(s));
  }
  StmtPtr s = make(StmtKind::Assign, c);
  AssignForm form = assign_form(c->assignOp()->start->getType());
  s->elementwise = form.elementwise;
  s->assign_op = form.op;
  s->op_span = span(c->assignOp());
  s->lhs = std::move(left);
  s->rhs = expr(c->expr(1));
  return give(std::move(s));
}

// ---- the rest ------------------------------------------------------------------------------------

antlrcpp::Any Builder::visitImportStmt(P::ImportStmtContext* c) {
  StmtPtr s = make(StmtKind::Import, c);
  s->text = string_value(c->STRING()->getSymbol());
  if (c->IDENT() != nullptr) {
    s->name = text(c->IDENT());
    s->name_span = span(c->IDENT());
  } else {
    // By the file's own name, where that is one.
    std::string name = s->text.substr(s->text.rfind('/') + 1);
    if (name.ends_with(".gk")) name.resize(name.size() - 3);
    const bool plain =
        !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
        std::all_of(name.begin(), name.end(), [](unsigned char x) { return std::isalnum(x) || x == '_'; });
    report(syntax_error("E0104", "what is imported needs a name", s->span)
               .help(fmt::format("write `import \"{}\" as {}`", s->text, plain ? name : "m")));
  }
  return give(std::move(s));
}

antlrcpp::Any Builder::visitPragmaStmt(P::PragmaStmtContext* c) {
  StmtPtr s = make(StmtKind::Pragma, c);
  s->name = text(c->IDENT(0));
  s->name_span = span(c->IDENT(0));
  if (c->IDENT(1) != nullptr) s->text = text(c->IDENT(1));
  return give(std::move(s));
}

antlrcpp::Any Builder::visitAssertStmt(P::AssertStmtContext* c) {
  StmtPtr s = make(StmtKind::Assert, c);
  s->rhs = expr(c->expr());
  for (P::ArgContext* a : c->arg()) s->args.push_back(arg(a));
  return give(std::move(s));
}

antlrcpp::Any Builder::visitTestStmt(P::TestStmtContext* c) {
  StmtPtr s = make(c->kind->getType() == P::TEST ? StmtKind::Test : StmtKind::Bench, c);
  s->text = string_value(c->STRING()->getSymbol());
  s->name_span = span(c->STRING());
  s->doc = doc(c);
  s->body = block(c->block());
  return give(std::move(s));
}

antlrcpp::Any Builder::visitExpectErrorStmt(P::ExpectErrorStmtContext* c) {
  StmtPtr s = make(StmtKind::ExpectError, c);
  s->text = text(c->IDENT());
  s->name_span = span(c->IDENT());
  s->body = block(c->block());
  return give(std::move(s));
}

// ---- types ---------------------------------------------------------------------------------------

TypePtr Builder::type(P::TypeContext* c) {
  if (c == nullptr) return nullptr;
  c->baseType()->accept(this);
  TypePtr t = std::move(type_);
  t->span = span(c);
  if (c->PLACEMENT() != nullptr) t->placement = text(c->PLACEMENT());
  return t;
}

antlrcpp::Any Builder::visitNamedType(P::NamedTypeContext* c) {
  auto t = std::make_unique<TypeExpr>();
  t->kind = TypeExpr::Kind::Named;
  t->name = text(c->IDENT(0));
  if (c->IDENT(1) != nullptr) t->name += "." + text(c->IDENT(1));
  t->has_dims = c->LBRACK() != nullptr;
  for (P::ExprContext* d : c->expr()) t->dims.push_back(expr(d));
  return give(std::move(t));
}

antlrcpp::Any Builder::visitListType(P::ListTypeContext* c) {
  auto t = std::make_unique<TypeExpr>();
  t->kind = TypeExpr::Kind::List;
  t->element = type(c->type());
  t->count = expr(c->expr());
  return give(std::move(t));
}

antlrcpp::Any Builder::visitRecordType(P::RecordTypeContext* c) {
  auto t = std::make_unique<TypeExpr>();
  t->kind = TypeExpr::Kind::Record;
  for (P::FieldContext* f : c->field()) {
    t->field_names.push_back(text(f->IDENT()));
    t->field_spans.push_back(span(f->IDENT()));
    t->fields.push_back(type(f->type()));
  }
  return give(std::move(t));
}

antlrcpp::Any Builder::visitTupleType(P::TupleTypeContext* c) {
  std::vector<P::TypeContext*> parts = c->type();
  if (parts.size() == 1 && c->COMMA().empty()) return give(type(parts[0]));
  auto t = std::make_unique<TypeExpr>();
  t->kind = TypeExpr::Kind::Tuple;
  for (P::TypeContext* part : parts) t->fields.push_back(type(part));
  return give(std::move(t));
}

}  // namespace gk::syntax
