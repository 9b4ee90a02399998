// Errors on their way out: gk::Error to gk::api::Error, with places instead of spans.
#include <fmt/format.h>

#include "compiler/engine/api/core.h"

namespace gk::api {

static_assert(static_cast<int>(ErrorKind::Internal) == static_cast<int>(gk::ErrorKind::Internal));
static_assert(static_cast<int>(DType::F64) == static_cast<int>(gk::DType::F64));

Error::Error(ErrorData data)
    : data_(std::make_shared<const ErrorData>(std::move(data))),
      what_(std::make_shared<const std::string>(data_->code + ": " + data_->message)) {}
Error::Error(const Error& first, std::vector<Error> more) : what_(first.what_) {
  ErrorData data = *first.data_;
  for (const Error& e : more) data.rendered += e.rendered();
  data_ = std::make_shared<const ErrorData>(std::move(data));
  more_ = std::make_shared<const std::vector<Error>>(std::move(more));
}
Error::Error(const Error& o) noexcept = default;
Error& Error::operator=(const Error& o) noexcept = default;
Error::~Error() = default;
CompileError::~CompileError() = default;
CaptureError::~CaptureError() = default;
OutOfMemory::~OutOfMemory() = default;
DeviceError::~DeviceError() = default;

const std::vector<Error>& Error::more() const noexcept {
  static const std::vector<Error> none;
  return more_ ? *more_ : none;
}
const char* Error::what() const noexcept { return what_->c_str(); }

void Error::raise() const {
  if (data_->compiling) throw CompileError(*this);
  switch (kind()) {
    case ErrorKind::Capture: throw CaptureError(*this);
    case ErrorKind::OutOfMemory: throw OutOfMemory(*this);
    case ErrorKind::Device: throw DeviceError(*this);
    default: throw Error(*this);
  }
}

}  // namespace gk::api

namespace gk::engine {

namespace {

api::Place place_of(const syntax::SourceMap& sources, Span s, std::string label) {
  api::Place p;
  auto from = sources.position(s.file, s.begin), to = sources.position(s.file, s.end);
  p.file = sources.name(s.file);
  p.line = from.line;
  p.column = from.column;
  p.end_line = to.line;
  p.end_column = to.column;
  p.begin = s.begin;
  p.end = s.end;
  p.label = std::move(label);
  return p;
}

}  // namespace

api::Error to_public(const syntax::SourceMap* sources, const gk::Error& given, bool compiling) {
  gk::Error e = given;
  auto known = [&](Span s) { return sources && s.valid() && s.file < sources->size(); };
  std::erase_if(e.labels, [&](const Label& l) { return !known(l.span); });
  // What the host program calls has no place in a text; the nearest that has one stands for it.
  if (!known(e.span) && !e.labels.empty()) {
    e.span = e.labels[0].span;
    e.span_text = e.labels[0].text;
    e.labels.erase(e.labels.begin());
  }
  if (!known(e.span)) e.span = {};
  api::ErrorData d;
  d.kind = static_cast<api::ErrorKind>(e.kind);
  d.code = e.code;
  d.message = e.message;
  d.notes = e.notes;
  d.helps = e.helps;
  d.compiling = compiling;
  if (known(e.span)) d.places.push_back(place_of(*sources, e.span, e.span_text));
  for (const auto& l : e.labels) d.places.push_back(place_of(*sources, l.span, l.text));
  static const syntax::SourceMap no_sources;
  d.rendered = syntax::render(sources ? *sources : no_sources, e, syntax::ErrorFormat::Human, false);
  return api::Error(std::move(d));
}

}  // namespace gk::engine
