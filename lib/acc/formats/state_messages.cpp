// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/state_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/json_number.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/file_name.hpp"
#include "acc/formats/saved_states.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_sent(int process, const std::string& what) {
  throw Error({.kind = ErrorKind::system,
               .what = what,
               .where = fmt::format("process {}", process),
               .hint = "all processes must run the same version of the program"});
}

/// Reads a message, which is an array in JSON, without the conversions that the library does silently.
class MessageReader {
 public:
  MessageReader(int process, const char* content) : process_(process), content_(content) {}

  // Calls `read` with each entry, in order.
  template <class Read>
  void read(std::string_view text, const Read& read) const {
    if (is_deeply_nested(text)) refuse();
    try {
      const Json message = Json::parse(text);
      for (const Json& entry : array(message)) read(entry);
    } catch (const Json::exception&) {
      refuse();
    }
  }

  const Json& array(Json&& value) const = delete;
  const Json& array(const Json& value) const {
    if (!value.is_array()) refuse();
    return value;
  }

  const Json& array(Json&& value, std::size_t size) const = delete;
  const Json& array(const Json& value, std::size_t size) const {
    if (array(value).size() != size) refuse();
    return value;
  }

  const std::string& text(const Json& value) const {
    if (!value.is_string()) refuse();
    return value.get_ref<const std::string&>();
  }

  template <class Number>
  Number number(const Json& value) const {
    const auto number = whole_number<Number>(value);
    if (!number || std::cmp_less(*number, 0)) refuse();
    return *number;
  }

  const std::string& file_name(const Json& value) const {
    const std::string& name = text(value);
    if (!is_below_folder(name))
      refuse_sent(process_, fmt::format("has sent '{}' as the name of a file", shorten(name)));
    return name;
  }

  void require_first(bool is_first, const std::string& entry) const {
    if (!is_first) refuse_sent(process_, fmt::format("has sent '{}' twice", shorten(entry)));
  }

  [[noreturn]] void refuse() const { refuse_message(process_, content_); }

 private:
  int process_;
  const char* content_;
};

std::string checksum_in(const MessageReader& reader, const Json& value) {
  constexpr std::size_t kDigits = 32;
  const std::string& checksum = reader.text(value);
  if (checksum.size() != kDigits || checksum.find_first_not_of("0123456789abcdef") != std::string::npos)
    reader.refuse();
  return checksum;
}

bool is_possible(const StateCandidate& candidate) {
  if (candidate.number > kMaxStateNumber) return false;
  if (candidate.disk.empty()) return !candidate.id.empty();
  return candidate.id.empty() && candidate.disk.front() == '/' &&
         candidate.disk.find('\0') == std::string::npos;
}

StateCandidate candidate_in(const MessageReader& reader, const Json& entry) {
  reader.array(entry, 3);
  StateCandidate candidate{.number = reader.number<std::int64_t>(entry[0]),
                           .id = reader.text(entry[1]),
                           .disk = reader.text(entry[2])};
  if (!is_possible(candidate)) reader.refuse();
  return candidate;
}

std::vector<PieceField> fields_in(const MessageReader& reader, const Json& entries) {
  std::vector<PieceField> fields;
  std::set<std::string> names;
  for (const Json& entry : reader.array(entries)) {
    const Json& number = reader.array(entry, 2)[1];
    if (!number.is_null() && !number.is_number()) reader.refuse();
    PieceField& field = fields.emplace_back(PieceField{.name = reader.text(entry[0])});
    if (number.is_number()) field.number = number.get<double>();
    reader.require_first(names.insert(field.name).second, field.name);
  }
  return fields;
}

}  // namespace

void require_utf8_name(const std::string& name) {
  if (is_utf8(name)) return;
  throw Error({.kind = ErrorKind::system,
               .what = "is not UTF-8, which the name of a file in memory has to be",
               .where = name,
               .hint = "rename it, or start without --memory-checkpoints"});
}

void refuse_message(int process, const std::string& content) {
  refuse_sent(process, "has sent something else than " + content);
}

std::string format_file_names(const std::vector<std::string>& names) {
  std::ranges::for_each(names, require_utf8_name);
  return Json(names).dump();
}

std::vector<std::string> parse_file_names(std::string_view text, int process) {
  const MessageReader reader(process, "names of files");
  std::vector<std::string> names;
  std::set<std::string> known;
  reader.read(text, [&](const Json& entry) {
    names.push_back(reader.file_name(entry));
    reader.require_first(known.insert(names.back()).second, names.back());
  });
  return names;
}

std::string format_checksums(const ChecksumsByName& checksums) {
  Json entries = Json::array();
  for (const auto& [name, checksum] : checksums) {
    require_utf8_name(name);
    entries.push_back(Json::array({name, checksum}));
  }
  return entries.dump();
}

ChecksumsByName parse_checksums(std::string_view text, int process) {
  const MessageReader reader(process, "checksums of files");
  ChecksumsByName checksums;
  reader.read(text, [&](const Json& entry) {
    const std::string& name = reader.file_name(reader.array(entry, 2)[0]);
    reader.require_first(checksums.emplace(name, checksum_in(reader, entry[1])).second, name);
  });
  return checksums;
}

std::string format_candidates(const std::vector<StateCandidate>& candidates) {
  Json entries = Json::array();
  for (const auto& [number, id, disk] : candidates) entries.push_back(Json::array({number, id, disk}));
  return entries.dump();
}

std::vector<StateCandidate> parse_candidates(std::string_view text, int process) {
  const MessageReader reader(process, "states that a machine has");
  std::vector<StateCandidate> candidates;
  std::set<StateCandidate> known;
  reader.read(text, [&](const Json& entry) {
    candidates.push_back(candidate_in(reader, entry));
    reader.require_first(known.insert(candidates.back()).second, entry.dump());
  });
  return candidates;
}

std::string parse_run_id(std::string_view text, int process) {
  constexpr std::size_t kMaxLength = 64;
  constexpr std::string_view kCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
  if (text.empty() || text.size() > kMaxLength ||
      text.find_first_not_of(kCharacters) != std::string_view::npos)
    refuse_message(process, "the id of a run");
  return std::string(text);
}

std::int64_t parse_sent_number(std::string_view text, const NumberRange& range, int process) {
  const auto number = parse_integer(text);
  if (!number || std::to_string(*number) != text || *number < range.min || *number > range.max)
    refuse_message(process, fmt::format("a number from {} to {}: '{}'", range.min, range.max, shorten(text)));
  return *number;
}

std::string format_piece_fields(const FieldsByPiece& fields) {
  Json entries = Json::array();
  for (const auto& [number, of_piece] : fields) {
    Json of_entry = Json::array();
    for (const PieceField& field : of_piece)
      of_entry.push_back(Json::array({field.name, field.number ? Json(*field.number) : Json()}));
    entries.push_back(Json::array({number.module, number.unit, number.piece, std::move(of_entry)}));
  }
  return entries.dump();
}

FieldsByPiece parse_piece_fields(std::string_view text, int process) {
  const MessageReader reader(process, "fields of an optimizer");
  FieldsByPiece fields;
  reader.read(text, [&](const Json& entry) {
    reader.array(entry, 4);
    const PieceNumber number{.module = reader.number<std::uint64_t>(entry[0]),
                             .unit = reader.number<std::uint64_t>(entry[1]),
                             .piece = reader.number<std::uint64_t>(entry[2])};
    reader.require_first(fields.emplace(number, fields_in(reader, entry[3])).second,
                         fmt::format("piece {}.{}.{}", number.module, number.unit, number.piece));
  });
  return fields;
}

}  // namespace acc
