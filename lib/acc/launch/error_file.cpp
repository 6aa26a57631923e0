// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "acc/base/error_file_fields.hpp"
#include "acc/base/files.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/launch_report.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

template <class Document>
Document parse_document(std::string_view text) {
  if (is_deeply_nested(text)) return Document::value_t::discarded;
  return Document::parse(text, nullptr, false);
}

// torch writes seconds as text, other writers as a number.
std::optional<std::chrono::system_clock::time_point> parse_time(const Json& value) {
  std::optional<double> seconds;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string()) seconds = parse_number(value.get_ref<const std::string&>());
  constexpr double kLatest = 1e10;  // beyond it the clock's own type overflows
  if (!seconds || *seconds <= 0 || *seconds > kLatest) return std::nullopt;
  using namespace std::chrono;
  return system_clock::time_point(duration_cast<system_clock::duration>(duration<double>(*seconds)));
}

// The timestamp in microseconds that libacc adds.
std::optional<std::chrono::system_clock::time_point> exact_time(const Json& extra) {
  if (!extra.contains(error_field::kTimestampUs) || !extra[error_field::kTimestampUs].is_string())
    return std::nullopt;
  const auto number = parse_integer(extra[error_field::kTimestampUs].get_ref<const std::string&>());
  constexpr std::int64_t kLatest = 10'000'000'000'000'000;
  if (!number || *number <= 0 || *number > kLatest) return std::nullopt;
  return std::chrono::system_clock::time_point(std::chrono::microseconds(*number));
}

std::vector<int> parse_ranks(const Json& extra) {
  constexpr std::size_t kMaxRanks = 1U << 16U;
  const auto list = extra.find(error_field::kLostRanks);
  if (list == extra.end() || !list->is_array() || list->size() > kMaxRanks) return {};
  std::vector<int> ranks;
  for (const Json& rank : *list) {
    if (rank.is_number_integer() && rank >= 0 && rank <= std::numeric_limits<int>::max())
      ranks.push_back(rank.get<int>());
  }
  return ranks;
}

// A text is shown, and sent to other nodes, in a report: of a very long one its two ends are.
std::string shorten(std::string text) {
  constexpr std::size_t kMaxEnd = std::size_t{32} << 10U;
  if (text.size() <= 2 * kMaxEnd) return text;
  const auto begins_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
  };
  // A character has four bytes at most; what has none of them is no UTF-8 and is cut anywhere.
  const auto character_at = [&](std::size_t at) {
    for (std::size_t begin = at; begin + 4 > at; --begin)
      if (begins_character(begin)) return begin;
    return at;
  };
  const std::size_t first = character_at(kMaxEnd);
  const std::size_t last = character_at(text.size() - kMaxEnd);
  return text.substr(0, first) + fmt::format("\n... ({} bytes are left out)\n", last - first) +
         text.substr(last);
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return {};
  const Json& value = object[key];
  return shorten(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

ErrorFile parse_error_file(std::string_view text) {
  const auto document = parse_document<Json>(text);
  if (!document.is_object() || !document.contains(error_field::kMessage)) {
    return {.message = shorten(std::string(trim(text))), .valid = false};
  }
  ErrorFile result;
  const Json& message = document[error_field::kMessage];
  if (!message.is_object()) {
    result.message = text_at(document, error_field::kMessage);
    if (document.contains(error_field::kTimestamp))
      result.time = parse_time(document[error_field::kTimestamp]);
    return result;
  }
  result.message = text_at(message, error_field::kMessage);
  if (message.contains(error_field::kExtraInfo) && message[error_field::kExtraInfo].is_object()) {
    const Json& extra = message[error_field::kExtraInfo];
    result.traceback = text_at(extra, error_field::kCallstack);
    if (extra.contains(error_field::kTimestamp)) result.time = parse_time(extra[error_field::kTimestamp]);
    if (const auto exact = exact_time(extra)) {
      result.time = exact;
      result.exact = true;
    }
    result.consequence =
        extra.contains(error_field::kConsequence) && extra[error_field::kConsequence] == true;
    result.lost_ranks = parse_ranks(extra);
  }
  return result;
}

std::string_view told_message(std::string_view torn) {
  const std::string name = fmt::format("\"{}\"", error_field::kMessage);
  const std::size_t outer = torn.find(name);
  const std::size_t inner = outer == torn.npos ? outer : torn.find(name, outer + name.size());
  const std::size_t quote = inner == torn.npos ? inner : torn.find('"', inner + name.size());
  const std::size_t end = quote == torn.npos ? quote : torn.find_first_of("\\\"", quote + 1);
  return end == torn.npos ? std::string_view() : torn.substr(quote + 1, end - quote - 1);
}

std::optional<ErrorFile> read_error_file(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMax = 1U << 26U;
  // Opening a pipe would wait for a writer.
  std::error_code ignored;
  std::ifstream in;
  if (std::filesystem::is_regular_file(file, ignored)) in.open(file, std::ios::binary);
  if (!in.is_open()) return std::nullopt;
  std::string text(std::min(kMax, std::filesystem::file_size(file, ignored)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.empty()) return std::nullopt;
  ErrorFile result = parse_error_file(text);
  result.path = file;
  return result;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

int python_exit_code(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) return -signaled->signal;
  return std::get<Exited>(status).code;
}

std::string to_text(const OrderedJson& document) {
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::string with_error_code(std::string_view text, const ExitStatus& status) {
  auto document = parse_document<OrderedJson>(text);
  if (!document.is_object() || !document.contains(error_field::kMessage) ||
      !document[error_field::kMessage].is_object())
    return std::string(text);
  document[error_field::kMessage][error_field::kErrorCode] = python_exit_code(status);
  return to_text(document);
}

std::string to_error_json(std::string_view message, std::string_view traceback,
                          std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  OrderedJson extra = {{error_field::kTimestamp, std::to_string(seconds)}};
  // torchrun would show an empty one in place of the message.
  if (!traceback.empty()) extra[error_field::kCallstack] = traceback;
  return to_text({{error_field::kMessage,
                   {{error_field::kMessage, message}, {error_field::kExtraInfo, std::move(extra)}}}});
}

void leave_error_file(const std::filesystem::path& file, const WorkerFailure& failure) {
  if (file.empty() || !failure.error_file) return;
  const ErrorFile& error = *failure.error_file;
  std::error_code ignored;
  const std::string text =
      std::filesystem::exists(error.path, ignored)
          ? read_file(error.path)
          : to_error_json(error.message, error.traceback, error.time.value_or(failure.time));
  replace_file(file, with_error_code(text, failure.status));
}

}  // namespace acc::launcher
