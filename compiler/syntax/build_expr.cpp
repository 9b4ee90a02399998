#include "compiler/syntax/build.h"
#include "compiler/syntax/number_array.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

BinaryOp binary_op(size_t type) {
  switch (type) {
    case P::PLUS: return BinaryOp::Add;
    case P::MINUS: return BinaryOp::Sub;
    case P::STAR: return BinaryOp::Mul;
    case P::SLASH: return BinaryOp::Div;
    case P::FLOORDIV: return BinaryOp::FloorDiv;
    case P::PERCENT: return BinaryOp::Mod;
    case P::AT: return BinaryOp::MatMul;
    case P::POW: return BinaryOp::Pow;
    case P::AND: return BinaryOp::And;
    case P::OR: return BinaryOp::Or;
    case P::AMP: return BinaryOp::BitAnd;
    case P::BAR: return BinaryOp::BitOr;
    case P::CARET: return BinaryOp::BitXor;
    case P::SHL: return BinaryOp::Shl;
    case P::SHR: return BinaryOp::Shr;
    case P::EQ: return BinaryOp::Eq;
    case P::NE: return BinaryOp::Ne;
    case P::LT: return BinaryOp::Lt;
    case P::LE: return BinaryOp::Le;
    case P::GT: return BinaryOp::Gt;
    case P::GE: return BinaryOp::Ge;
    default: return BinaryOp::Approx;
  }
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::Eq; }

/// "&", "|", "^"; null for other operators.
const char* bitwise_sign(BinaryOp op) {
  return op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor ? spelling(op) : nullptr;
}

P::ExprContext* as_expr(antlr4::tree::ParseTree* c) { return dynamic_cast<P::ExprContext*>(c); }

/// The left operand of a left-recursive alternative; null for every other.
P::ExprContext* left_operand(P::ExprContext* c) {
  return c->children.empty() ? nullptr : dynamic_cast<P::ExprContext*>(c->children[0]);
}

}  // namespace

ExprPtr Builder::make(ExprKind kind, antlr4::ParserRuleContext* c) const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->span = span(c);
  return e;
}

ExprPtr Builder::expr(P::ExprContext* c) {
  if (c == nullptr) return nullptr;
  // a + b + c + … is as deep to the left as it is long: walk down it, then build on the way back.
  std::vector<P::ExprContext*> spine;
  while (P::ExprContext* left = left_operand(c)) {
    spine.push_back(c);
    c = left;
  }
  c->accept(this);
  ExprPtr built = std::move(expr_);
  for (auto it = spine.rbegin(); it != spine.rend(); ++it) {
    left_ = std::move(built);
    (*it)->accept(this);
    built = std::move(expr_);
  }
  return built;
}

antlrcpp::Any Builder::visitCallExpr(P::CallExprContext* c) {
  ExprPtr e = make(ExprKind::Call, c);
  e->lhs = std::move(left_);
  e->args = args(c->args());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitIndexExpr(P::IndexExprContext* c) {
  ExprPtr e = make(ExprKind::IndexOp, c);
  e->lhs = std::move(left_);
  if (c->indices() != nullptr)
    for (P::IndexContext* i : c->indices()->index()) e->indices.push_back(index(i));
  return give(std::move(e));
}

Index Builder::index(P::IndexContext* c) {
  Index i;
  i.span = span(c);
  if (c->ELLIPSIS() != nullptr) {
    i.kind = Index::Kind::Ellipsis;
  } else if (c->NEW() != nullptr) {
    i.kind = Index::Kind::New;
  } else if (P::SliceContext* slice = c->slice()) {
    i.kind = Index::Kind::Slice;
    i.start = expr(c->expr());
    i.stop = expr(slice->last);
    i.step = expr(slice->step);
  } else {
    i.expr = expr(c->expr());
  }
  return i;
}

antlrcpp::Any Builder::visitFieldExpr(P::FieldExprContext* c) {
  ExprPtr e = make(ExprKind::Field, c);
  e->lhs = std::move(left_);
  e->field = text(c->IDENT());
  e->field_span = span(c->IDENT());
  e->op_span = span(c->DOT());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitLaunchExpr(P::LaunchExprContext* c) {
  ExprPtr e = make(ExprKind::Launch, c);
  e->args = args(c->args());
  e->rhs = expr(c->expr());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitBinaryExpr(P::BinaryExprContext* c) {
  ExprPtr e = make(ExprKind::Binary, c);
  e->lhs = std::move(left_);
  e->binary = binary_op(c->op->getType());
  e->op_span = span(c->op);
  // A chain a < b < c is a comparison directly inside another; (a < b) < c is not. The outermost one of
  // a < b < c < d reports.
  auto compares = [](antlr4::tree::ParseTree* x) {
    auto* b = dynamic_cast<P::BinaryExprContext*>(x);
    return b != nullptr && is_comparison(binary_op(b->op->getType()));
  };
  e->rhs = expr(c->expr(1));
  if (compares(c) && compares(c->expr(0)) && !(compares(c->parent) && left_operand(as_expr(c->parent)) == c))
    report(chained(c));
  return give(std::move(e));
}

/// For the comparisons in a row of which `last` is the last.
Error Builder::chained(P::BinaryExprContext* last) const {
  std::vector<P::BinaryExprContext*> links{last};  // from left to right
  for (auto* link = dynamic_cast<P::BinaryExprContext*>(last->expr(0));
       link != nullptr && is_comparison(binary_op(link->op->getType()));
       link = dynamic_cast<P::BinaryExprContext*>(link->expr(0)))
    links.insert(links.begin(), link);
  auto sign = [](P::BinaryExprContext* link) { return spelling(binary_op(link->op->getType())); };
  auto words = [&](P::ExprContext* x) { return text(span(x)); };
  // x > 0 & x < 2 is (x > (0 & x)) < 2: the comparisons were meant to be the operands.
  std::string split, both, masks;
  std::string left = words(links.front()->expr(0)), operand = left;
  bool splits = true;
  for (P::BinaryExprContext* link : links) {
    auto* middle = dynamic_cast<P::BinaryExprContext*>(link->expr(1));
    const char* bits = middle == nullptr ? nullptr : bitwise_sign(binary_op(middle->op->getType()));
    const bool is_last = link == last;
    splits = splits && (is_last || bits != nullptr);
    const std::string right = words(link->expr(1));
    split += fmt::format("({} {} {})", left, sign(link), bits && !is_last ? words(middle->expr(0)) : right);
    if (bits && !is_last) split += fmt::format(" {} ", bits);
    both += fmt::format("{}{} {} {}", both.empty() ? "" : " and ", operand, sign(link), right);
    masks += fmt::format("{}({} {} {})", masks.empty() ? "" : " & ", operand, sign(link), right);
    left = bits ? words(middle->expr(1)) : right;
    operand = right;
  }
  Error e = syntax_error("E0106", "comparisons do not chain", span((*std::next(links.begin()))->op))
                .mark("second comparison")
                .label(span(links.front()->op), "first comparison");
  if (splits)
    return std::move(e)
        .note("`&`, `^` and `|` bind more tightly than comparisons")
        .help(fmt::format("write `{}`", split));
  return std::move(e).help(fmt::format("write `{}`; between arrays `{}`", both, masks));
}

antlrcpp::Any Builder::visitUnaryExpr(P::UnaryExprContext* c) {
  ExprPtr e = make(ExprKind::Unary, c);
  switch (c->op->getType()) {
    case P::MINUS: e->unary = UnaryOp::Neg; break;
    case P::PLUS: e->unary = UnaryOp::Plus; break;
    case P::TILDE: e->unary = UnaryOp::BitNot; break;
    default: e->unary = UnaryOp::Not; break;
  }
  e->op_span = span(c->op);
  e->lhs = expr(c->expr());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitRangeExpr(P::RangeExprContext* c) {
  ExprPtr e = make(ExprKind::Range, c);
  e->lhs = std::move(left_);
  e->op_span = span(c->DOTDOT());
  e->rhs = expr(c->expr(1));
  return give(std::move(e));
}

antlrcpp::Any Builder::visitPipeExpr(P::PipeExprContext* c) {
  Arg first;
  first.value = std::move(left_);
  first.span = first.value->span;
  Span pipe = span(c->PIPE());
  ExprPtr target = expr(c->expr(1));
  ExprPtr e;
  // x |> f(a) is f(x, a); any other right side is called with x alone.
  if (target->kind == ExprKind::Call && !target->piped) {
    e = std::move(target);
    e->span = span(c);
    e->args.insert(e->args.begin(), std::move(first));
  } else {
    e = make(ExprKind::Call, c);
    e->lhs = std::move(target);
    e->args.push_back(std::move(first));
  }
  e->piped = true;
  e->op_span = pipe;
  return give(std::move(e));
}

antlrcpp::Any Builder::visitLambdaExpr(P::LambdaExprContext* c) {
  ExprPtr e = make(ExprKind::Lambda, c);
  e->op_span = span(c->FATARROW());
  if (c->LAMBDA_NAME() != nullptr) {
    Param p;
    p.span = span(c->LAMBDA_NAME());
    p.name = text(p.span);
    e->params.push_back(std::move(p));
  } else {
    e->params = params(c->params());
  }
  ExprPtr body = expr(c->expr());
  bool braces = dynamic_cast<P::BlockExprContext*>(c->expr()) != nullptr;
  if (braces)
    e->body = std::move(body->body);
  else
    e->rhs = std::move(body);
  return give(std::move(e));
}

antlrcpp::Any Builder::visitNameExpr(P::NameExprContext* c) {
  ExprPtr e = make(ExprKind::Name, c);
  e->text = text(e->span);
  return give(std::move(e));
}

antlrcpp::Any Builder::visitWildcardExpr(P::WildcardExprContext* c) {
  return give(make(ExprKind::Wildcard, c));
}

antlrcpp::Any Builder::visitNumberExpr(P::NumberExprContext* c) {
  ExprPtr e = make(ExprKind::Int, c);
  e->text = text(e->span);
  number(*e, static_cast<int>(c->start->getType()));
  return give(std::move(e));
}

antlrcpp::Any Builder::visitNumberArrayExpr(P::NumberArrayExprContext* c) {
  ExprPtr e = make(ExprKind::ArrayLit, c);
  auto numbers = std::make_shared<NumberArray>();
  scan_number_array(text_.substr(e->span.begin - base_, e->span.end - e->span.begin), numbers.get());
  e->numbers = std::move(numbers);
  return give(std::move(e));
}

antlrcpp::Any Builder::visitBoolExpr(P::BoolExprContext* c) {
  ExprPtr e = make(ExprKind::Bool, c);
  e->bool_value = c->TRUE() != nullptr;
  return give(std::move(e));
}

antlrcpp::Any Builder::visitStringExpr(P::StringExprContext* c) {
  ExprPtr e = make(ExprKind::String, c);
  e->text = string_value(c->start);
  return give(std::move(e));
}

antlrcpp::Any Builder::visitFStringExpr(P::FStringExprContext* c) {
  ExprPtr e = make(ExprKind::FString, c);
  fstring(*e, e->span);
  return give(std::move(e));
}

antlrcpp::Any Builder::visitParenExpr(P::ParenExprContext* c) {
  std::vector<P::ExprContext*> parts = c->expr();
  if (parts.size() == 1 && c->COMMA().empty()) return give(expr(parts[0]));
  ExprPtr e = make(ExprKind::TupleLit, c);
  if (parts.empty())
    report(
        syntax_error("E0106", "`()` is not a value", e->span).note("a tuple has at least one part: `(a,)`"));
  for (P::ExprContext* part : parts) e->elements.push_back(expr(part));
  return give(std::move(e));
}

antlrcpp::Any Builder::visitArrayExpr(P::ArrayExprContext* c) {
  ExprPtr e = make(ExprKind::ArrayLit, c);
  for (P::ExprContext* part : c->expr()) e->elements.push_back(expr(part));
  return give(std::move(e));
}

antlrcpp::Any Builder::visitListTypeExpr(P::ListTypeExprContext* c) {
  ExprPtr e = make(ExprKind::Type, c);
  e->type = std::make_unique<TypeExpr>();
  e->type->kind = TypeExpr::Kind::List;
  e->type->span = e->span;
  e->type->element = type(c->type());
  e->type->count = expr(c->expr());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitIfExpr(P::IfExprContext* c) {
  std::vector<P::ExprContext*> conditions = c->expr();
  std::vector<P::BlockContext*> blocks = c->block();
  // Built from the last `else if` up; each link spans from its own `if` to the end.
  ExprPtr rest;
  for (size_t i = conditions.size(); i-- > 0;) {
    ExprPtr e = make(ExprKind::If, c);
    e->span.begin = span(c->IF(i)).begin;
    e->lhs = expr(conditions[i]);
    e->body = block(blocks[i]);
    if (rest != nullptr)
      e->else_if = std::move(rest);
    else if (blocks.size() > conditions.size())
      e->else_body = block(blocks.back());
    rest = std::move(e);
  }
  return give(std::move(rest));
}

antlrcpp::Any Builder::visitCaptureExpr(P::CaptureExprContext* c) {
  ExprPtr e = make(ExprKind::Capture, c);
  e->body = block(c->block());
  return give(std::move(e));
}

antlrcpp::Any Builder::visitBlockExpr(P::BlockExprContext* c) {
  ExprPtr e = make(ExprKind::BlockExpr, c);
  e->body = block(c->block());
  return give(std::move(e));
}

std::vector<Arg> Builder::args(P::ArgsContext* c) {
  std::vector<Arg> out;
  if (c == nullptr) return out;
  for (P::ArgContext* a : c->arg()) out.push_back(arg(a));
  return out;
}

Arg Builder::arg(P::ArgContext* c) {
  Arg a;
  a.span = span(c);
  a.is_mut = c->MUT() != nullptr;
  if (c->IDENT() != nullptr) {
    a.name = text(c->IDENT());
    a.name_span = span(c->IDENT());
  }
  a.value = expr(c->expr());
  return a;
}

}  // namespace gk::syntax
