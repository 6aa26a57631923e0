// SPDX-License-Identifier: Apache-2.0
#include "acc/base/lost_peer.hpp"

#include "support/catch.hpp"

namespace lost_peer_test {

TEST_CASE("lost_peer: messages of Gloo, NCCL, torch's store and libacc name a lost peer, others do not",
          "[base]") {
  const auto* message =
      GENERATE("[/pytorch/gloo/pair.cc:547] Connection closed by peer [127.0.0.1]:20398",
               "NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
               "failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown?",
               "[Errno 32] Broken pipe", "rank 0, backward: ranks 1, 2 ended or were lost: Socket closed",
               "rank 0, backward: another process gave up waiting for rank 1; rank 1 is in data");
  CHECK(acc::names_lost_peer(message));
  CHECK_FALSE(acc::names_lost_peer("ValueError: no data"));
  CHECK_FALSE(acc::names_lost_peer(""));
  CHECK(acc::collective_names_lost_peer(message));
}

TEST_CASE("lost_peer: less specific words name one in an exception of a collective alone", "[base]") {
  const auto* message = GENERATE("Connection refused", "[/pytorch/gloo/tcp/pair.cc:1] Read error",
                                 "NCCL communicator was aborted on rank 3.");
  CHECK(acc::collective_names_lost_peer(message));
  CHECK_FALSE(acc::names_lost_peer(message));
  CHECK_FALSE(acc::collective_names_lost_peer("ValueError: no data"));
}

}  // namespace lost_peer_test
