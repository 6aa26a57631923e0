// SPDX-License-Identifier: Apache-2.0
#include "acc/config/installed_packages.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using acc::test::TemporaryFolder;

TEST_CASE("installed_packages: versions are read from the names of folders", "[config]") {
  const TemporaryFolder folder;
  folder.write("venv/bin/python", "");
  folder.write("venv/pyvenv.cfg", "");
  folder.write("venv/lib/python3.11/site-packages/torch-2.11.0+cu130.dist-info/METADATA", "");
  folder.write("venv/lib/python3.11/site-packages/nvidia_nccl_cu13-2.29.7.dist-info/METADATA", "");
  folder.write("venv/lib/python3.11/site-packages/torch/x", "");
  const auto found = acc::launcher::site_packages(folder.path() / "venv/bin/python");
  REQUIRE(found.size() == 1);
  CHECK(acc::launcher::installed_packages(found) ==
        std::map<std::string, std::string>{{"nvidia_nccl_cu13", "2.29.7"}, {"torch", "2.11.0+cu130"}});
  CHECK(acc::launcher::installed_packages({folder.path() / "none"}).empty());
}

TEST_CASE("installed_packages: a LibTorch tells its version in a header", "[config]") {
  const TemporaryFolder folder;
  CHECK(acc::launcher::libtorch_version(folder.path()).empty());
  folder.write(
      "include/torch/headeronly/version.h",
      "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n#define TORCH_VERSION_PATCH 0\n");
  CHECK(acc::launcher::libtorch_version(folder.path()) == "2.11.0");
}
