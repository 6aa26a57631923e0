// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/folder_replacement.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/torch_tensor.hpp"
#include "support/working_folder.hpp"

namespace folder_replacement_test {

namespace {

namespace fs = std::filesystem;

bool is_replaced(const std::string& name) {
  return name.starts_with("part");
}

void write(const fs::path& file, std::string_view text) {
  acc::replace_file(file, text);
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

struct stat about(const fs::path& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) throw std::runtime_error("no " + path.string());
  return found;
}

mode_t mode_of(const fs::path& path) {
  return about(path).st_mode & 07777U;
}

void set_mode(const fs::path& path, mode_t mode) {
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

// The root of a container with this file in its image; for this process alone. Empty: none can be mounted.
fs::path mount_image(const fs::path& folder, const fs::path& file) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("acc-test", folder.c_str(), "tmpfs", 0, nullptr) != 0)
    return {};
  for (const char* name : {"upper", "work", "root"}) fs::create_directory(folder / name);
  write(folder / "lower" / file, "of the image");
  const std::string layers = "lowerdir=" + (folder / "lower").string() +
                             ",upperdir=" + (folder / "upper").string() +
                             ",workdir=" + (folder / "work").string();
  const fs::path root = folder / "root";
  return ::mount("acc-test", root.c_str(), "overlay", 0, layers.c_str()) == 0 ? root : fs::path();
}

}  // namespace

TEST_CASE("folder replacement: a new folder is not visible until it is published", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  acc::detail::FolderReplacement folder(parent / "deep" / "target", is_replaced);
  folder.begin();
  write(folder.temporary() / "part", "new");
  CHECK_FALSE(fs::exists(parent / "deep" / "target"));
  folder.publish();
  CHECK(acc::read_file(parent / "deep" / "target" / "part") == "new");
  CHECK(entries(parent / "deep") == 1);
}

TEST_CASE("folder replacement: replaced parts of the old folder are removed, everything else is kept",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const fs::path target = parent / "target";
  write(target / "part_1", "old");
  write(target / "part_2", "old");
  write(target / "notes" / "a.txt", "mine");
  write(target / "shared", "old");
  acc::detail::FolderReplacement folder(target, is_replaced);
  folder.begin();
  write(folder.temporary() / "part_1", "new");
  write(folder.temporary() / "shared", "new");
  folder.publish();
  CHECK(acc::read_file(target / "part_1") == "new");
  CHECK_FALSE(fs::exists(target / "part_2"));
  CHECK(acc::read_file(target / "notes" / "a.txt") == "mine");
  CHECK(acc::read_file(target / "shared") == "new");
  CHECK(entries(parent) == 1);
}

TEST_CASE("folder replacement: abandoning leaves the old folder unchanged", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / "target" / "part", "old");
  acc::detail::FolderReplacement folder(parent / "target", is_replaced);
  folder.begin();
  write(folder.temporary() / "part", "new");
  folder.abandon();
  CHECK(acc::read_file(parent / "target" / "part") == "old");
  CHECK(entries(parent) == 1);
}

TEST_CASE("folder replacement: leftovers of a killed process do not get into the next folder", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  acc::detail::FolderReplacement killed(parent / "target", is_replaced);
  killed.begin();
  write(killed.temporary() / "part_of_the_killed", "x");
  acc::detail::FolderReplacement folder(parent / "target", is_replaced);
  folder.begin();
  write(folder.temporary() / "part", "new");
  folder.publish();
  CHECK(entries(parent / "target") == 1);
}

TEST_CASE("folder replacement: after a kill between two renames the old folder is found and restored",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / ".target.acc-old" / "part", "old");
  CHECK(acc::read_file(acc::detail::complete_folder(parent / "target") / "part") == "old");
  acc::detail::FolderReplacement folder(parent / "target", is_replaced);
  folder.begin();
  CHECK(acc::read_file(parent / "target" / "part") == "old");
}

TEST_CASE("folder replacement: a symbolic link to a folder remains a link", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / "real" / "part", "old");
  fs::create_directory_symlink(parent / "real", parent / "link");
  acc::detail::FolderReplacement folder(parent / "link", is_replaced);
  folder.begin();
  write(folder.temporary() / "part", "new");
  folder.publish();
  CHECK(fs::is_symlink(parent / "link"));
  CHECK(acc::read_file(parent / "real" / "part") == "new");
}

TEST_CASE("folder replacement: the folder may be any path that the shell accepts", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const acc::test::WorkingFolder inside(parent);
  fs::create_directory_symlink("to_come", "dangling");
  const std::string absolute = parent / "absolute";
  for (const std::string& name :
       {std::string("x"), std::string("./y"), std::string("a/z"), std::string("w/"), absolute,
        std::string("name with spaces"), std::string("../") + parent.filename().string() + "/up",
        std::string("dangling")}) {
    INFO(name);
    for (const std::string text : {"first", "second"}) {
      acc::detail::FolderReplacement folder(name, is_replaced);
      folder.begin();
      write(folder.temporary() / "part", text);
      folder.publish();
      CHECK(acc::read_file(fs::path(name) / "part") == text);
    }
    CHECK(acc::detail::complete_folder(name) == name);
    acc::detail::remove_folder(name);
    CHECK_FALSE(fs::exists(name));
  }
}

TEST_CASE("folder replacement: a file and the working folder are refused", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / "file", "x");
  CHECK(acc::test::error_of([&] { acc::detail::FolderReplacement(parent / "file", is_replaced); }) ==
        (parent / "file").string() + ": cannot be replaced: Not a directory");
  CHECK(
      acc::test::error_of([] { acc::detail::FolderReplacement(".", is_replaced); }) ==
      ".: contains the working folder, and would be replaced as a whole (give the checkpoint a folder of its "
      "own)");
}

TEST_CASE("folder replacement: a mount point is refused before anything is written", "[runtime]") {
  CHECK(acc::test::error_of([] { acc::detail::FolderReplacement("/proc", is_replaced); }) ==
        "/proc: is a mount point, and would be replaced as a whole (give the checkpoint a folder in it)");
}

TEST_CASE("folder replacement: of a link only the link is removed", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / "archive" / "best" / "part", "kept");
  fs::create_directory(parent / "run");
  fs::create_directory_symlink("../archive/best", parent / "run" / "checkpoint_0");
  acc::detail::remove_folder(parent / "run" / "checkpoint_0");
  CHECK(fs::is_empty(parent / "run"));
  CHECK(acc::read_file(parent / "archive" / "best" / "part") == "kept");
}

TEST_CASE("folder replacement: a removed folder is gone, including leftovers of an earlier removal",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  write(parent / "target" / "part", "x");
  write(parent / ".target.acc-gone" / "part", "x");
  acc::detail::remove_folder(parent / "target");
  CHECK(fs::is_empty(parent));
  acc::detail::remove_folder(parent / "target");
}

TEST_CASE("folder replacement: of two machines on one disk only the first begins", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  acc::detail::FolderReplacement first(parent / "target", is_replaced);
  acc::detail::FolderReplacement second(parent / "target", is_replaced);
  CHECK_FALSE(first.has_begun());
  first.begin();
  write(first.temporary() / "part", "new");
  second.begin_if_absent();
  CHECK(first.has_begun());
  CHECK_FALSE(second.has_begun());
  second.abandon();
  CHECK(acc::read_file(second.temporary() / "part") == "new");
  first.publish();
  second.begin_if_absent();
  CHECK(second.has_begun());
}

TEST_CASE("folder replacement: what replaces something keeps its mode and owner", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const fs::path target = parent / "target";
  for (const char* name : {"part", "shards_part/1", "notes/mine"}) write(target / name, "old");
  set_mode(target / "part", 0600);
  set_mode(target / "shards_part" / "1", 0640);
  set_mode(target / "shards_part", 0750);
  set_mode(target / "notes", 0710);
  set_mode(target, 02750);
  const bool is_given = ::chown((target / "part").c_str(), 12345, 23456) == 0;
  acc::detail::FolderReplacement folder(target, [](const std::string& name) { return name != "notes"; });
  folder.begin();
  CHECK((mode_of(folder.temporary()) & 0777U) == 0700U);
  for (const char* name : {"part", "shards_part/1", "new_part"}) write(folder.temporary() / name, "new");
  folder.publish();
  CHECK(acc::read_file(target / "part") == "new");
  CHECK(mode_of(target) == 02750U);
  CHECK(mode_of(target / "part") == 0600U);
  CHECK(mode_of(target / "shards_part") == 0750U);
  CHECK(mode_of(target / "shards_part" / "1") == 0640U);
  CHECK(mode_of(target / "notes") == 0710U);
  CHECK(fs::exists(target / "new_part"));
  if (is_given) CHECK(about(target / "part").st_uid == 12345);
  if (is_given) CHECK(about(target / "part").st_gid == 23456);
}

TEST_CASE("folder replacement: folders that may not be written are replaced, and kept, as others are",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const int result = acc::test::in_child([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && (::chown(parent.c_str(), kNobody, kNobody) != 0 || ::setuid(kNobody) != 0))
      return acc::test::kSkipped;
    const fs::path target = parent / "target";
    for (int save = 1; save <= 3; ++save) {
      acc::detail::FolderReplacement folder(target, is_replaced);
      folder.begin();
      write(folder.temporary() / "part", std::to_string(save));
      folder.publish();
      if (save > 1) continue;
      write(target / "notes" / "mine", "kept");
      set_mode(target / "notes", 0500);
      set_mode(target, 0500);
    }
    const bool is_new = acc::read_file(target / "part") == "3" && mode_of(target) == 0500U;
    const bool is_kept =
        acc::read_file(target / "notes" / "mine") == "kept" && mode_of(target / "notes") == 0500U;
    const bool is_alone = entries(parent) == 1;
    for (const fs::path& folder : {target, target / "notes"}) set_mode(folder, 0700);
    return is_new && is_kept && is_alone ? 0 : 1;
  });
  if (result == acc::test::kSkipped) return acc::test::skip("no other user can be taken");
  CHECK(result == 0);
}

TEST_CASE("folder replacement: links and pipes are kept, too", "[runtime]") {
  const fs::path target = acc::test::temporary_folder() / "target";
  write(target / "part", "old");
  write(target / "notes" / "mine", "kept");
  fs::create_symlink("nowhere", target / "link");
  REQUIRE(::mkfifo((target / "pipe").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((target / "notes" / "pipe").c_str(), 0600) == 0);
  acc::detail::FolderReplacement folder(target, is_replaced);
  folder.begin();
  write(folder.temporary() / "part", "new");
  folder.publish();
  CHECK(fs::read_symlink(target / "link") == "nowhere");
  CHECK(fs::is_fifo(target / "pipe"));
  CHECK(fs::is_fifo(target / "notes" / "pipe"));
  CHECK(acc::read_file(target / "notes" / "mine") == "kept");
}

TEST_CASE("folder replacement: a name that is too long is refused before anything is written", "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const fs::path fits = parent / std::string(245, 'a');
  acc::detail::FolderReplacement folder(fits, is_replaced);
  folder.begin();
  folder.publish();
  CHECK(fs::is_directory(fits));
  const fs::path longer = parent / "new" / std::string(246, 'a');
  CHECK(
      acc::test::error_of([&] { acc::detail::FolderReplacement(longer, is_replaced); }) ==
      longer.string() +
          ": has too long a name: that of the new folder beside it is longer (give the checkpoint a shorter "
          "name)");
  CHECK(acc::detail::complete_folder(longer) == longer);
  CHECK(entries(parent) == 1);
}

TEST_CASE("folder replacement: a folder of a container's image is removed, and otherwise left alone",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  const int result = acc::test::in_child([&] {
    const fs::path root = mount_image(parent, "saved/part");
    if (root.empty()) return acc::test::kSkipped;
    const fs::path saved = root / "saved";
    acc::detail::FolderReplacement folder(saved, is_replaced);
    folder.begin();
    write(folder.temporary() / "part", "new");
    const std::string error = acc::test::error_of([&] { folder.publish(); });
    folder.abandon();
    const bool is_unchanged = acc::read_file(saved / "part") == "of the image" && entries(root) == 1;
    acc::detail::remove_folder(saved);
    const bool is_refused =
        error == saved.string() +
                     ": cannot be replaced: its file system does not rename it, as a folder of a container's "
                     "image (save to a new folder, or to a volume)";
    return is_refused && is_unchanged && fs::is_empty(root) ? 0 : 1;
  });
  if (result == acc::test::kSkipped) return acc::test::skip("no file system can be mounted");
  CHECK(result == 0);
}

}  // namespace folder_replacement_test
