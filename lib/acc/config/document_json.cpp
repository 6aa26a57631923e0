// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "acc/config/document_parsers.hpp"

namespace acc::launcher {
namespace {

// An input iterator that records how far the library has read: its SAX events carry no positions.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* current, const char** reached) : current_(current), reached_(reached) {}

  reference operator*() const { return *current_; }
  Cursor& operator++() {
    *reached_ = ++current_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return current_ == other.current_; }

 private:
  const char* current_;
  const char** reached_;
};

class JsonEvents : public nlohmann::json_sax<Value> {
 public:
  JsonEvents(std::string_view text, const std::string& file)
      : text_(text), file_(file), builder_(file), reached_(text.data()) {}

  const char** reached() { return &reached_; }
  DocumentNode release_root() { return builder_.release_root(); }

  bool null() override { return add(nullptr, "null"); }
  bool boolean(bool value) override { return add(value, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return add(value, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    // As in the YAML reader, integers are signed where they fit.
    if (value > static_cast<number_unsigned_t>(INT64_MAX))
      return add(static_cast<double>(value), std::to_string(value));
    return add(static_cast<number_integer_t>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& written) override { return add(value, written); }
  bool string(string_t& value) override {
    builder_.add({.value = value, .text = value, .quoted = true, .position = string_start()});
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(DocumentNode::Kind::mapping); }
  bool start_array(std::size_t) override { return open(DocumentNode::Kind::list); }
  bool key(string_t& value) override {
    builder_.add_key(value, string_start());
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    // "[...] parse error at line 2, column 8: syntax error while parsing value - REASON; last read: ..."
    std::string reason = error.what();
    if (const std::size_t dash = reason.find(" - "); dash != std::string::npos) reason.erase(0, dash + 3);
    reason.resize(std::min(reason.find("; last read"), reason.size()));
    const bool ended = reason.find("unexpected end of input") != std::string::npos ||
                       reason.find("missing closing quote") != std::string::npos;
    fail_at(file_, position_at(reached_ > text_.data() ? reached_ - 1 : reached_),
            ended ? "ends in the middle of its JSON text" : "is not valid JSON: " + reason);
  }

 private:
  bool add(Value value, std::string text) {
    const char* start = reached_;
    while (start > text_.data() &&
           std::string_view(" \t\r\n,:[]{}").find(start[-1]) != std::string_view::npos)
      --start;
    while (start > text_.data() && std::string_view(" \t\r\n,:[{").find(start[-1]) == std::string_view::npos)
      --start;
    builder_.add({.value = std::move(value), .text = std::move(text), .position = position_at(start)});
    return true;
  }

  bool open(DocumentNode::Kind kind) {
    builder_.open(kind, position_at(reached_ - 1));
    return true;
  }

  bool close() {
    builder_.close();
    return true;
  }

  // The reader is behind the closing quote; the opening quote is the nearest one that is not escaped.
  Position string_start() {
    const char* quote = reached_ - 2;
    for (; quote > text_.data(); --quote) {
      if (*quote != '"') continue;
      const char* before = quote;
      while (before > text_.data() && before[-1] == '\\') --before;
      if ((quote - before) % 2 == 0) break;
    }
    return position_at(quote);
  }

  // Tokens arrive in the order of the text, so each character is visited once.
  Position position_at(const char* target) {
    for (; visited_ < target; ++visited_) {
      if (*visited_ != '\n') continue;
      ++line_;
      line_start_ = visited_ + 1;
    }
    return {line_, static_cast<int>(target - line_start_) + 1};
  }

  std::string_view text_;
  std::string file_;
  DocumentBuilder builder_;
  const char* reached_;
  const char* visited_ = text_.data();
  const char* line_start_ = text_.data();
  int line_ = 1;
};

}  // namespace

DocumentNode parse_json(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  JsonEvents events(text, file);
  const Cursor begin(text.data(), events.reached());
  const Cursor end(text.data() + text.size(), events.reached());
  Value::sax_parse(begin, end, &events);
  return events.release_root();
}

}  // namespace acc::launcher
