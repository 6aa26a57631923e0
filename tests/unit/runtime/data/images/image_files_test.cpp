// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_files.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace {

using acc::test::error_of;
using acc::test::TemporaryFolder;

std::vector<std::string> names(const TemporaryFolder& folder, const acc::ImageFiles& images) {
  std::vector<std::string> all;
  for (const auto& file : images.files) all.push_back(file.lexically_relative(folder.path()).string());
  return all;
}

}  // namespace

TEST_CASE("image_files: each folder is a class, in torchvision's order", "[runtime]") {
  const TemporaryFolder folder;
  for (const char* file :
       {"dog/b.png", "dog/a.JPG", "cat/2.jpeg", "cat/10.jpg", "cat/deeper/0.jpg", "cat/notes.txt"})
    folder.write(file, "");
  folder.write("stray.jpg", "");
  const acc::ImageFiles images = acc::image_folder(folder.path());
  CHECK(images.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(names(folder, images) ==
        std::vector<std::string>{"cat/10.jpg", "cat/2.jpeg", "cat/deeper/0.jpg", "dog/a.JPG", "dog/b.png"});
  CHECK(images.labels == std::vector<std::int64_t>{0, 0, 0, 1, 1});
}

TEST_CASE("image_files: labels come from names by a pattern", "[runtime]") {
  const TemporaryFolder folder;
  for (const char* file : {"great_dane_12.jpg", "Abyssinian_3.jpg", "great_dane_2.jpg"})
    folder.write(file, "");
  const acc::ImageFiles images = acc::labelled_images(folder.path(), "^(.*)_\\d+[.]jpg$");
  CHECK(images.classes == std::vector<std::string>{"Abyssinian", "great_dane"});
  CHECK(names(folder, images) ==
        std::vector<std::string>{"Abyssinian_3.jpg", "great_dane_12.jpg", "great_dane_2.jpg"});
  CHECK(images.labels == std::vector<std::int64_t>{0, 1, 1});
  folder.write("nameless.jpg", "");
  CHECK(error_of([&] {
          acc::labelled_images(folder.path(), "^(.*)_\\d+[.]jpg$");
        }).starts_with((folder.path() / "nameless.jpg").string() + ": has no label"));
}

TEST_CASE("image_files: folders without images are errors that name them", "[runtime]") {
  const TemporaryFolder folder;
  const std::string place = folder.path().string();
  CHECK(error_of([&] { acc::image_folder(folder.path() / "missing"); }) ==
        place + "/missing: cannot be read: No such file or directory");
  CHECK(error_of([&] { acc::image_folder(folder.path()); }) ==
        place + ": has no folders (each class of images is a folder of its name)");
  folder.write("cat/a.txt", "");
  CHECK(error_of([&] { acc::image_folder(folder.path()); }) ==
        place + "/cat: holds no .jpg, .jpeg or .png files");
  CHECK(error_of([&] { acc::labelled_images(folder.path(), "(a)"); }) ==
        place + ": holds no .jpg, .jpeg or .png files");
}

TEST_CASE("image_files: a pattern that is none is an error", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("a.jpg", "");
  CHECK(error_of([&] {
          acc::labelled_images(folder.path(), "(a");
        }).starts_with("the pattern '(a': is no regular expression"));
  CHECK(error_of([&] { acc::labelled_images(folder.path(), "a"); }) ==
        "the pattern 'a': has no group that is the label");
}
