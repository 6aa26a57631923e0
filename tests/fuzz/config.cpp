// SPDX-License-Identifier: Apache-2.0
// Config files, as YAML and as JSON. Each is read, or refused with a position; what is read can be
// written, edited, and read again as the same.
#include "acc/config/edit.hpp"
#include "acc/config/read.hpp"
#include "acc/config/write.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::format_config;
using acc::launcher::parse_config;

void require_positions(const acc::Error& error, const std::string& name) {
  for (const acc::Problem& problem : error.problems())
    fuzz::require(problem.where.starts_with(name), "an error names its position", to_string(problem));
}

void require_positions(const std::vector<acc::Problem>& problems, const std::string& name) {
  require_positions(acc::Error(acc::ErrorKind::config, problems), name);
}

void check(std::string_view text, const std::string& name) {
  acc::launcher::FileConfig config;
  try {
    config = parse_config(text, name);
  } catch (const acc::Error& error) {
    fuzz::require_clear(error);
    return require_positions(error, name);
  }
  require_positions(acc::launcher::contradictions(config), name);
  require_positions(config.notes, name);
  // Unknown keys of sections are kept, with any value; all others are written again.
  if (!config.notes.empty()) return;
  const std::string written = format_config(config.values, name);
  fuzz::require(format_config(parse_config(written, name).values, name) == written, "it is written as read",
                written);
  const std::string edited = acc::launcher::edited_config(std::string(text), config.values, name);
  fuzz::require(format_config(parse_config(edited, name).values, name) == written, "an edit keeps the values",
                edited);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  check(text, "c.yaml");
  check(text, "c.json");
  return 0;
}
