// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/link.hpp"

namespace acc::launcher {

/// Says `hello` on a link that this node has made and started: without a secret at once, else when the other
/// side has proven to know it. Then, during the call or later, calls `done`; with false when the other side
/// has not proven it, has heard nothing and is to be believed nothing. When the link is lost before, calls
/// `lost`.
void introduce(const std::shared_ptr<Link>& link, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(LinkLoss)> lost);

}  // namespace acc::launcher
