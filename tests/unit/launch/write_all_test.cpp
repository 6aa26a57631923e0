// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/write_all.hpp"

#include <fcntl.h>

#include "acc/launch/channel.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"

using namespace acc;

TEST_CASE("write_all: everything arrives", "[launch]") {
  const Channel pipe = make_pipe();
  CHECK(write_all(pipe.workers, "one\ntwo\n").empty());
  CHECK(test::read_all(pipe.ours.get()) == "one\ntwo\n");
}

TEST_CASE("write_all: a full disk is told", "[launch]") {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK(write_all(full, "x") == "No space left on device");
}
