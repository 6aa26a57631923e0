// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <vector>

#include "acc/config/schema_rows.hpp"
#include "support/catch.hpp"

namespace schema_general_test {

using acc::launcher::SettingSpec;

namespace {

std::vector<SettingSpec> general_rows() {
  std::vector<SettingSpec> all;
  for (const auto rows : acc::launcher::general_rows()) all.insert(all.end(), rows.begin(), rows.end());
  return all;
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
