// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_dataset.hpp"

#include <thread>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace image_dataset_test {

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

TEST_CASE("image_files: a pattern finds labels in file names", "[runtime]") {
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
  const std::string path = folder.path().string();
  CHECK(error_of([&] { acc::image_folder(folder.path() / "missing"); }) ==
        path + "/missing: cannot be read: No such file or directory");
  CHECK(error_of([&] { acc::image_folder(folder.path()); }) ==
        path + ": has no folders (put the images of each class into a folder with the name of the class)");
  folder.write("cat/a.txt", "");
  CHECK(error_of([&] { acc::image_folder(folder.path()); }) ==
        path + "/cat: contains no .jpg, .jpeg or .png files");
  CHECK(error_of([&] { acc::labelled_images(folder.path(), "(a)"); }) ==
        path + ": contains no .jpg, .jpeg or .png files");
}

TEST_CASE("image_files: an invalid pattern is an error", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("a.jpg", "");
  CHECK(error_of([&] {
          acc::labelled_images(folder.path(), "(a");
        }).starts_with("the pattern '(a': is not a regular expression"));
  CHECK(error_of([&] { acc::labelled_images(folder.path(), "a"); }) ==
        "the pattern 'a': has no group, which would be the label");
}

namespace {

using acc::test::TemporaryFolder;

const std::filesystem::path kImages = ACC_TEST_DATA "/runtime/images";

// Two classes: color.png and gray.png in `a`, alpha.png in `b`.
void write_images(const TemporaryFolder& folder) {
  folder.write("a/color.png", acc::read_file(kImages / "color.png"));
  folder.write("a/gray.png", acc::read_file(kImages / "gray.png"));
  folder.write("b/alpha.png", acc::read_file(kImages / "alpha.png"));
}

}  // namespace

TEST_CASE("image_dataset: a batch is the requested images and their labels", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const TemporaryFolder folder;
  write_images(folder);
  const acc::ImageDataset plain(acc::image_folder(folder.path()));
  CHECK(plain.size() == 3);
  const auto [images, labels] = plain.get_batch({2, 1});
  CHECK(images.scalar_type() == at::kByte);
  CHECK(images[0].equal(acc::read_image(kImages / "alpha.png")));
  CHECK(images[1].equal(acc::read_image(kImages / "gray.png")));
  CHECK(labels.equal(acc::test::numbers({1, 0}, {2}, at::kLong)));
  const acc::ImageDataset ready(acc::image_folder(folder.path()),
                                {.transforms = {acc::random_resized_crop(8), acc::random_horizontal_flip()},
                                 .normalize = acc::Normalize()});
  CHECK(ready.get_batch({0, 1, 2})[0].sizes() == c10::IntArrayRef({3, 3, 8, 8}));
  CHECK(ready.get_batch({0})[0].scalar_type() == at::kFloat);
}

TEST_CASE("image_dataset: random transforms depend only on the pass and the sample", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const TemporaryFolder folder;
  write_images(folder);
  const acc::ImageDataset dataset(acc::image_folder(folder.path()),
                                  {.transforms = {acc::random_resized_crop(16)}});
  const auto read = [&](std::uint64_t pass, c10::ArrayRef<std::size_t> indices) {
    const acc::detail::PassSeed seed(pass);
    return dataset.get_batch(indices)[0];
  };
  const at::Tensor together = read(7, {0, 1, 2});
  at::Tensor alone;
  std::thread([&] { alone = read(7, {2}); }).join();
  CHECK(alone[0].equal(together[2]));
  CHECK_FALSE(read(8, {2}).equal(alone));
}

TEST_CASE("image_dataset: a broken image is refused by name, or skipped and listed", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const TemporaryFolder folder;
  write_images(folder);
  const auto broken = folder.write("a/gray.png", acc::read_file(kImages / "gray.png").substr(0, 100));
  const acc::ImageFiles files = acc::image_folder(folder.path());
  try {
    acc::ImageDataset(files).get_batch({0, 1});
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == broken.string());
  }
  const acc::ImageDataset skipping(files, {.broken = acc::BrokenImages::skip});
  const auto [images, labels] = skipping.get_batch({0, 1});
  CHECK(images[1].equal(acc::read_image(kImages / "alpha.png")));
  CHECK(labels.equal(acc::test::numbers({0, 1}, {2}, at::kLong)));
  REQUIRE(skipping.skipped().size() == 1);
  CHECK(skipping.skipped()[0].starts_with(broken.string() + ": is a broken PNG image"));
}

TEST_CASE("image_dataset: it is an error when no image can be read", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("a/one.png", "");
  folder.write("a/two.png", "");
  const acc::ImageDataset dataset(acc::image_folder(folder.path()), {.broken = acc::BrokenImages::skip});
  CHECK_THROWS_AS(dataset.get_batch({0}), acc::Error);
  CHECK(dataset.skipped().size() == 2);
  CHECK_THROWS_AS(acc::ImageDataset(acc::ImageFiles()), acc::Error);
}

}  // namespace image_dataset_test
