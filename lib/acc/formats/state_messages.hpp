// SPDX-License-Identifier: Apache-2.0
// What processes of all machines send each other when they save and load states together. The parsers throw
// Error{system}, which names the process that sent a text, for all that the formatters do not write: names
// that lead out of a folder, numbers that are out of range, entries that are there twice.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// Throws this error: `process` has sent something else than `content`.
[[noreturn]] void refuse_message(int process, const std::string& content);

/// Throws Error{system} for the name of a file that is not UTF-8: all that is written about a state is JSON.
void require_utf8_name(const std::string& name);

/// Names of files below a folder, with the subfolders that they are in. All pass require_utf8_name().
std::string format_file_names(const std::vector<std::string>& names);
/// Each is once in the result, and stays below the folder.
std::vector<std::string> parse_file_names(std::string_view text, int process);

/// The checksums of files below a folder (see checksum_of), by the files' names.
using ChecksumsByName = std::map<std::string, std::string>;

/// All names pass require_utf8_name().
std::string format_checksums(const ChecksumsByName& checksums);
/// The names are as those of parse_file_names.
ChecksumsByName parse_checksums(std::string_view text, int process);

/// A state that a machine has: a snapshot in memory or a folder on a disk.
struct StateCandidate {
  std::int64_t number = 0;  ///< As SavedState::number.
  std::string id = {};      ///< Of a snapshot, for which it is not empty.
  std::string disk = {};    ///< The absolute path of a folder on a disk; empty for a snapshot.

  auto operator<=>(const StateCandidate&) const = default;
};

/// Ids and paths are UTF-8.
std::string format_candidates(const std::vector<StateCandidate>& candidates);
std::vector<StateCandidate> parse_candidates(std::string_view text, int process);

/// Letters, digits and `-`, at most 64: tells the states of one attempt from those of others.
std::string parse_run_id(std::string_view text, int process);

/// The numbers from min to max.
struct NumberRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

/// A number of this range, as std::to_string() writes it.
std::int64_t parse_sent_number(std::string_view text, const NumberRange& range, int process);

/// Where a piece of a parameter is in the sharded models of an optimizer.
struct PieceNumber {
  std::uint64_t module = 0;
  std::uint64_t unit = 0;   ///< In the module.
  std::uint64_t piece = 0;  ///< In the unit.

  auto operator<=>(const PieceNumber&) const = default;
};

/// A field that an optimizer has for a piece.
struct PieceField {
  std::string name = {};
  std::optional<double> number = {};  ///< Absent where each element has its own.

  bool operator==(const PieceField&) const = default;
};

/// The fields of each piece, in the order of the optimizer.
using FieldsByPiece = std::map<PieceNumber, std::vector<PieceField>>;

std::string format_piece_fields(const FieldsByPiece& fields);
FieldsByPiece parse_piece_fields(std::string_view text, int process);

}  // namespace acc
