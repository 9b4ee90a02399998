// The library that is written in gk.
#include <gtest/gtest.h>

#include <set>

#include "compiler/sema/library.h"
#include "compiler/syntax/parse.h"

namespace gk::sema {

TEST(Library, every_definition_is_found_and_right) {
  syntax::SourceMap sources;
  Library library(sources);
  for (const BuiltinInfo& b : library_builtins()) {
    const auto f = library.find(b.name, DType::F32);
    ASSERT_NE(f, nullptr) << b.name;
    const Builtin* builtin = find_builtin(b.name);
    ASSERT_NE(builtin, nullptr) << b.name;
    EXPECT_TRUE(is_library(*builtin)) << b.name;
    ASSERT_EQ(builtin->parsed.params.size(), f->fn->params.size()) << b.signature;
    for (size_t i = 0; i < f->fn->params.size(); ++i) {
      EXPECT_EQ(builtin->parsed.params[i].name, f->fn->params[i].name) << b.signature;
      EXPECT_EQ(builtin->parsed.params[i].optional, f->fn->params[i].fallback != nullptr) << b.signature;
    }
    EXPECT_EQ(f->fn->doc.substr(0, 8), b.doc.substr(0, 8)) << b.name;
  }
  for (int32_t file = 0; file < sources.size(); ++file)
    for (const Error& e : syntax::parse(sources, file).errors)
      ADD_FAILURE() << sources.name(file) << ": " << e.message;
}

TEST(Library, a_file_is_parsed_when_one_of_its_names_is_used) {
  syntax::SourceMap sources;
  Library library(sources);
  EXPECT_EQ(sources.size(), 0);
  EXPECT_EQ(library.find("sin", DType::F32), nullptr);
  EXPECT_EQ(sources.size(), 0);
  EXPECT_NE(library.find("square", DType::F32), nullptr);
  EXPECT_EQ(sources.size(), 1);
  // Each default float has its own: what is known of a call depends on it.
  EXPECT_NE(library.find("square", DType::F64), library.find("square", DType::F32));
  EXPECT_EQ(library.find("square", DType::F64), library.find("square", DType::F64));
}

TEST(Library, inner_names_are_no_builtins_of_programs) {
  for (const Builtin& b : public_builtins()) EXPECT_NE(b.name[0], '_') << b.name;
  EXPECT_NE(find_builtin("_count"), nullptr);
}

}  // namespace gk::sema
