// SPDX-License-Identifier: Apache-2.0
#include "acc/config/paths.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using acc::Environment;
using acc::launcher::default_config_path;
using acc::launcher::find_default_config;

TEST_CASE("paths: the default file is below HF_HOME, XDG_CACHE_HOME or ~/.cache, in that order", "[config]") {
  Environment environment{{"HOME", "/home/u"}};
  CHECK(default_config_path(environment) == "/home/u/.cache/huggingface/accelerate/default_config.yaml");
  environment.set("XDG_CACHE_HOME", "/cache");
  CHECK(default_config_path(environment) == "/cache/huggingface/accelerate/default_config.yaml");
  environment.set("HF_HOME", "~/hf");
  CHECK(default_config_path(environment) == "/home/u/hf/accelerate/default_config.yaml");
}

TEST_CASE("paths: an empty HF_HOME means the current folder, as in accelerate", "[config]") {
  CHECK(default_config_path({{"HOME", "/home/u"}, {"HF_HOME", ""}}) == "accelerate/default_config.yaml");
}

TEST_CASE("paths: without HOME the system's home folder serves", "[config]") {
  CHECK(acc::launcher::expand_home("~/x", {}).is_absolute());
}

TEST_CASE("paths: only a ~ at the beginning is expanded", "[config]") {
  const Environment environment{{"HOME", "/home/u"}};
  CHECK(acc::launcher::expand_home("~", environment) == "/home/u");
  CHECK(acc::launcher::expand_home("a/~/b", environment) == "a/~/b");
  CHECK(acc::launcher::expand_home("~other/b", environment) == "~other/b");
}

TEST_CASE("paths: an old JSON default is found where there is no YAML one", "[config]") {
  const acc::test::TemporaryFolder folder;
  const Environment environment{{"HF_HOME", folder.path().string()}};
  CHECK_FALSE(find_default_config(environment));
  const auto json = folder.write("accelerate/default_config.json", "{}");
  CHECK(find_default_config(environment) == json);
  const auto yaml = folder.write("accelerate/default_config.yaml", "{}");
  CHECK(find_default_config(environment) == yaml);
}
