// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"
#include "support/catch.hpp"

namespace schema_general_test {

using acc::launcher::SettingSpec;

namespace {

// The settings that belong to no family, which come first.
std::span<const SettingSpec> general_rows() {
  return acc::launcher::schema().first(acc::launcher::key::dynamo_config.index);
}

}  // namespace

TEST_CASE("schema_general: the help shows each group in one piece, and no group twice", "[config]") {
  std::vector<std::string_view> groups;
  for (const SettingSpec& spec : general_rows()) {
    if (spec.group.empty() || (!groups.empty() && groups.back() == spec.group)) continue;
    INFO(spec.name);
    CHECK(std::ranges::find(groups, spec.group) == groups.end());
    groups.push_back(spec.group);
  }
  CHECK(groups.size() == 8);
}

TEST_CASE("schema_general: a setting without a group is a key of config files that has no flag", "[config]") {
  for (const SettingSpec& spec : general_rows()) {
    INFO(spec.name);
    CHECK(spec.group.empty() == std::empty(spec.flags));
    if (std::empty(spec.flags)) CHECK(spec.in_file);
  }
}

}  // namespace schema_general_test
