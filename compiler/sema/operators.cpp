#include "compiler/sema/operators.h"

namespace gk::sema {

using syntax::BinaryOp;

std::optional<ir::Op> op_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add: return ir::Op::Add;
    case BinaryOp::Sub: return ir::Op::Sub;
    case BinaryOp::Mul: return ir::Op::Mul;
    case BinaryOp::Div: return ir::Op::Div;
    case BinaryOp::FloorDiv: return ir::Op::FloorDiv;
    case BinaryOp::Mod: return ir::Op::Mod;
    case BinaryOp::MatMul: return ir::Op::MatMul;
    case BinaryOp::Pow: return ir::Op::Pow;
    case BinaryOp::BitAnd: return ir::Op::And;
    case BinaryOp::BitOr: return ir::Op::Or;
    case BinaryOp::BitXor: return ir::Op::Xor;
    case BinaryOp::Shl: return ir::Op::Shl;
    case BinaryOp::Shr: return ir::Op::Shr;
    case BinaryOp::Eq: return ir::Op::Eq;
    case BinaryOp::Ne: return ir::Op::Ne;
    case BinaryOp::Lt: return ir::Op::Lt;
    case BinaryOp::Le: return ir::Op::Le;
    case BinaryOp::Gt: return ir::Op::Gt;
    case BinaryOp::Ge: return ir::Op::Ge;
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Approx: return std::nullopt;
  }
  return std::nullopt;
}

std::string_view written(ir::Op op) {
  if (op == ir::Op::BitNot) return "~";
  for (BinaryOp b : {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::BitAnd,
                     BinaryOp::BitOr, BinaryOp::BitXor, BinaryOp::Shl, BinaryOp::Shr})
    if (op_of(b) == op) return syntax::spelling(b);
  return ir::info(op).name;
}

syntax::BinaryOp combining(syntax::AssignOp op) {
  switch (op) {
    case syntax::AssignOp::Add: return syntax::BinaryOp::Add;
    case syntax::AssignOp::Sub: return syntax::BinaryOp::Sub;
    case syntax::AssignOp::Mul: return syntax::BinaryOp::Mul;
    default: return syntax::BinaryOp::Div;
  }
}

}  // namespace gk::sema
