// SPDX-License-Identifier: Apache-2.0
// What processes send each other about saved states: the first byte says as what the others are read. The
// name of a file stays below its folder, a number is in its range, and what was read is the same when it is
// sent on.
#include "acc/formats/state_messages.hpp"

#include <filesystem>
#include <iterator>
#include <set>

#include "acc/base/text.hpp"
#include "acc/formats/saved_states.hpp"
#include "fuzz/promise.hpp"

namespace {

namespace fs = std::filesystem;

constexpr int kProcess = 3;

// The value of a text, which its format sends on.
template <class Parse, class Format>
auto read_again(std::string_view text, Parse parse, Format format) {
  const auto value = fuzz::value_or_error([&] { return parse(text, kProcess); });
  if (value) fuzz::require(parse(format(*value), kProcess) == *value, "a message is sent on", text);
  return value;
}

void require_below(const std::string& name) {
  const fs::path path = (fs::path("/folder") / name).lexically_normal();
  const bool is_below = path.string().starts_with("/folder/") && path.has_filename();
  fuzz::require(is_below, "a name stays below its folder", name);
  fuzz::require(name.find('\0') == std::string::npos, "a name is whole for the system", name);
}

void check_file_names(std::string_view text) {
  const auto names = read_again(text, acc::parse_file_names, acc::format_file_names);
  if (!names) return;
  for (const std::string& name : *names) require_below(name);
  fuzz::require(std::set(names->begin(), names->end()).size() == names->size(), "a name is there once", text);
}

void check_checksums(std::string_view text) {
  const auto checksums = read_again(text, acc::parse_checksums, acc::format_checksums);
  if (!checksums) return;
  for (const auto& [name, checksum] : *checksums) {
    require_below(name);
    fuzz::require(checksum.size() == 32, "a checksum has its digits", checksum);
  }
}

void check_candidates(std::string_view text) {
  const auto candidates = read_again(text, acc::parse_candidates, acc::format_candidates);
  if (!candidates) return;
  for (const auto& [number, id, disk] : *candidates) {
    fuzz::require(number >= 0 && number <= acc::kMaxStateNumber, "a state has a number", text);
    fuzz::require(id.empty() == fs::path(disk).is_absolute(), "a state is in memory or on a disk", text);
  }
}

void check_run_id(std::string_view text) {
  const auto id = fuzz::value_or_error([&] { return acc::parse_run_id(text, kProcess); });
  if (id) fuzz::require(!id->empty() && id->size() <= 64 && acc::is_utf8(*id), "an id is a word", text);
}

void check_number(std::string_view text) {
  const auto number = fuzz::value_or_error(
      [&] { return acc::parse_sent_number(text, {.min = -5, .max = 1'000'000}, kProcess); });
  if (number) fuzz::require(*number >= -5 && *number <= 1'000'000, "a number is in its range", text);
}

void check_piece_fields(std::string_view text) {
  read_again(text, acc::parse_piece_fields, acc::format_piece_fields);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr void (*kChecks[])(std::string_view) = {check_file_names, check_checksums, check_candidates,
                                                   check_run_id,     check_number,    check_piece_fields};
  std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t kind = fuzz::Choices(bytes).below(std::size(kChecks));
  kChecks[kind](bytes);
  return 0;
}
