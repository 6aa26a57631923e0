// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "acc/control/job_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace job_file_folder_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;

TEST_CASE("runtime_folder: the session's folder comes before the machine's", "[control]") {
  const Environment environment = {{"XDG_RUNTIME_DIR", "/run/mine/"}, {"TMPDIR", "/scratch"}};
  CHECK(runtime_folders(environment, 7) == std::vector<fs::path>{"/run/mine/acc", "/run/user/7/acc",
                                                                 "/dev/shm/acc-7", "/tmp/acc-7",
                                                                 "/scratch/acc-7"});
  CHECK(runtime_folders({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"TMPDIR", "/tmp"}}, 7) ==
        std::vector<fs::path>{"/run/user/7/acc", "/dev/shm/acc-7", "/tmp/acc-7"});
  CHECK(runtime_folders({{"XDG_RUNTIME_DIR", "relative"}}, 7).front() == "/run/user/7/acc");
}

TEST_CASE("runtime_folder: those of all users are found by their names", "[control]") {
  const TemporaryFolder root;
  for (const char* folder :
       {"run/user/7/acc", "run/user/8", "run/user/x/acc", "dev/shm/acc-7", "tmp/acc-70", "tmp/acc-me"})
    fs::create_directories(root.path() / folder);
  std::vector<std::pair<fs::path, uid_t>> folders;
  for (const auto& [path, owner] : all_runtime_folders(root.path()))
    folders.emplace_back(path.lexically_relative(root.path()), owner);
  CHECK(folders ==
        std::vector<std::pair<fs::path, uid_t>>{
            {"dev/shm/acc-7", 7}, {"run/user/7/acc", 7}, {"run/user/8/acc", 8}, {"tmp/acc-70", 70}});
  CHECK(all_runtime_folders(root.path() / "nowhere").empty());
}

TEST_CASE("runtime_folder: is created for its user alone", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  CHECK_FALSE(open_runtime_folder(folder, false));
  CHECK(open_runtime_folder(folder, true));
  CHECK(fs::status(folder).permissions() == fs::perms::owner_all);
  CHECK(open_runtime_folder(folder, false));
}

TEST_CASE("runtime_folder: one that others may enter is refused", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  ::chmod(folder.c_str(), 0750);
  CHECK(error_of([&] { open_runtime_folder(folder, true); }) ==
        folder.string() + ": is open to other users and is not used (chmod 700 " + folder.string() + ")");
}

TEST_CASE("runtime_folder: another user's is refused", "[control]") {
  if (::geteuid() != 0) {
    skip("this user is not root");
    return;
  }
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  REQUIRE(::chown(folder.c_str(), 12345, 12345) == 0);
  CHECK(error_of([&] { open_runtime_folder(folder, true); }).find("belongs to another user") !=
        std::string::npos);
}

TEST_CASE("runtime_folder: a symbolic link is not followed", "[control]") {
  const TemporaryFolder base;
  fs::create_directory(base.path() / "real");
  fs::create_symlink(base.path() / "real", base.path() / "acc");
  CHECK_THROWS(open_runtime_folder(base.path() / "acc", true));
}

}  // namespace job_file_folder_test
