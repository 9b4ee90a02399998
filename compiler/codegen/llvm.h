// The LLVM headers that code generation uses, in one place: it is the folder's precompiled header and the
// only way in. Owns nothing. Promises that no other folder needs it: codegen.h does not include it. Not for
// the JIT linker and the pass builder, whose headers stay in host_image.cpp and machine.cpp.
#pragma once

#include <llvm/IR/Attributes.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
