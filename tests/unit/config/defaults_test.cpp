// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <sys/fsuid.h>
#include <unistd.h>

#include "acc/base/text.hpp"
#include "acc/config/write.hpp"
#include "support/catch.hpp"
#include "support/recordings.hpp"
#include "support/temporary_folder.hpp"

namespace defaults_test {

using acc::Environment;
using acc::launcher::ConfigValues;
using acc::launcher::default_config;
using acc::launcher::default_config_path;
using acc::launcher::find_default_config;
using acc::launcher::note_hidden_default_config;
using acc::launcher::with_defaults;

TEST_CASE("defaults: a default file is accelerate's, for every number of GPUs", "[config]") {
  const std::string name =
      GENERATE("default_cpu", "default_one_gpu", "default_four_gpus", "default_four_gpus_fp8");
  const auto recorded = acc::test::recording(name);
  const std::string precision = acc::to_lower(recorded.at("mixed_precision").get<std::string>());
  INFO(name);
  CHECK(acc::launcher::format_config(default_config(recorded.at("gpus"), precision), "c.json") ==
        recorded.at("file"));
}

TEST_CASE("defaults: an updated file has accelerate's additions and its precision", "[config]") {
  const auto recorded = acc::test::recording("update_json");
  const auto before = acc::launcher::parse_config(recorded.at("before").get<std::string>(), "c.json").values;
  ConfigValues after = with_defaults(before);
  // accelerate leaves mixed_precision out and then warns at each launch that it was not given.
  CHECK(after.at("mixed_precision") == "no");
  after.erase("mixed_precision");
  CHECK(acc::launcher::format_config(after, "c.json") == recorded.at("after"));
}

TEST_CASE("defaults: an updated file of SageMaker is accelerate's", "[config]") {
  const auto recorded = acc::test::recording("update_sagemaker");
  const auto before = acc::launcher::parse_config(recorded.at("before").get<std::string>(), "c.yaml").values;
  CHECK(acc::launcher::format_config(with_defaults(before), "c.yaml") == recorded.at("after"));
}

TEST_CASE("defaults: given values stay, and only type NO implies a number of processes", "[config]") {
  const ConfigValues values = with_defaults({{"distributed_type", "MULTI_GPU"}, {"num_machines", 2}});
  CHECK(values.at("num_machines") == 2);
  CHECK_FALSE(values.contains("num_processes"));
  CHECK(with_defaults({{"distributed_type", "NO"}}).at("num_processes") == 1);
}

TEST_CASE("defaults: SageMaker's files have defaults of their own", "[config]") {
  const ConfigValues values = with_defaults(
      {{"compute_environment", "AMAZON_SAGEMAKER"}, {"distributed_type", "NO"}, {"region", "x"}});
  CHECK(values.at("region") == "x");
  CHECK(values.at("py_version") == "py38");
  CHECK(values.at("gpu_ids") == "all");
  CHECK_FALSE(values.contains("num_processes"));
}

TEST_CASE("defaults: AMAZON_SAGEMAKER selects the kind of the file", "[config]") {
  CHECK(acc::launcher::kind_of({}) == acc::launcher::ConfigKind::cluster);
  CHECK(acc::launcher::kind_of({{"compute_environment", "LOCAL_MACHINE"}}) ==
        acc::launcher::ConfigKind::cluster);
  CHECK(acc::launcher::kind_of({{"compute_environment", "AMAZON_SAGEMAKER"}}) ==
        acc::launcher::ConfigKind::sagemaker);
}

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

TEST_CASE("paths: an old JSON default is found where there is no YAML one", "[config]") {
  const acc::test::TemporaryFolder folder;
  const Environment environment{{"HF_HOME", folder.path().string()}};
  CHECK_FALSE(find_default_config(environment));
  const auto json = folder.write("accelerate/default_config.json", "{}");
  CHECK(find_default_config(environment) == json);
  const auto yaml = folder.write("accelerate/default_config.yaml", "{}");
  CHECK(find_default_config(environment) == yaml);
}

TEST_CASE("paths: a default file that cannot be reached is not taken for none", "[config]") {
  const acc::test::TemporaryFolder folder;
  const Environment environment{{"HF_HOME", folder.path().string()}};
  std::filesystem::create_directory(folder.path() / "accelerate");
  const auto link = folder.path() / "accelerate" / "default_config.yaml";
  std::filesystem::create_symlink("missing.yaml", link);
  CHECK(find_default_config(environment) == link);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(link.filename(), link);
  CHECK(find_default_config(environment) == link);
  CHECK(note_hidden_default_config(environment).empty());
}

TEST_CASE("paths: a folder that this user may not search is said to hide the default file", "[config]") {
  const acc::test::TemporaryFolder folder;
  folder.write("accelerate/default_config.yaml", "{}");
  const Environment environment{{"HF_HOME", folder.path().string()}};
  std::filesystem::permissions(folder.path(), std::filesystem::perms::none);
  constexpr uid_t kNobody = 65534;
  ::setfsuid(kNobody);  // root may search every folder
  const auto found = find_default_config(environment);
  const std::string note = note_hidden_default_config(environment);
  ::setfsuid(::geteuid());
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  CHECK_FALSE(found);
  CHECK(
      note.starts_with(default_config_path(environment).string() + ": permission denied: the defaults hold"));
}

TEST_CASE("paths: where a folder is missing there is no default file", "[config]") {
  const acc::test::TemporaryFolder folder;
  CHECK_FALSE(find_default_config({{"HF_HOME", (folder.write("file", "") / "x").string()}}));
}

}  // namespace defaults_test
