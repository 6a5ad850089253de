// The embedded profiles: there is one for each preset, and what they say can be said.
#include "support.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/config/profile.hpp"
#include "recibo/transition/disposition.hpp"
#include "recibo/verify/scheme.hpp"

#include <gtest/gtest.h>

namespace recibo::config {
namespace {

TEST(Profiles, EveryPresetHasOne) {
  for (const auto& [name, unused] : verify::presets()) EXPECT_NE(find_profile(name), nullptr) << name;
  EXPECT_EQ(find_profile("hmac"), nullptr);
  EXPECT_EQ(find_profile(""), nullptr);
}

TEST(Profiles, StatusesFitTheirDispositions) {
  for (const auto& [name, p] : profiles()) {
    for (const auto& [word, status] : p.statuses) {
      EXPECT_TRUE(status >= 200 && status < 300) << name << ' ' << word << ": a default never refuses what is on record";
      if (status == 204) {
        EXPECT_EQ(p.body, "") << name << ' ' << word;
      }
    }
  }
}

TEST(Profiles, TimesArePlausible) {
  for (const auto& [name, p] : profiles()) {
    if (p.answer_within) {
      EXPECT_GE(*p.answer_within, std::chrono::milliseconds(500)) << name;
      EXPECT_LE(*p.answer_within, std::chrono::seconds(15)) << name;
    }
    if (p.resend_gap && p.resend_span) {
      EXPECT_LE(*p.resend_gap, *p.resend_span) << name;
    }
  }
}

TEST(Profiles, HandshakesThatNeedATokenAreNotImplied) {
  for (const auto& [name, p] : profiles()) {
    if (p.handshake) {
      EXPECT_FALSE(wants_token(*p.handshake)) << name;
    }
  }
}

TEST(Profiles, WhatHurtsIsSaidOtherwise) {
  EXPECT_EQ(find_profile("discord")->statuses.at("applied"), 204);
  EXPECT_EQ(find_profile("pagerduty")->statuses.at("unprocessable"), 202);
  EXPECT_EQ(find_profile("paddle")->statuses.at("parked"), 200);
  EXPECT_EQ(find_profile("paddle")->statuses.count("conflict"), 0u) << "a 4xx has no further consequences there";
  EXPECT_EQ(find_profile("adyen")->body, "[accepted]");
  EXPECT_EQ(find_profile("stripe")->statuses.size(), 0u);
}

TEST(Profiles, NamesOfHandshakesGoThereAndBack) {
  for (const auto name : handshake_names()) EXPECT_EQ(to_string(*find_handshake(name)), name);
  EXPECT_EQ(handshake_names().size(), 16u);
  EXPECT_FALSE(find_handshake("none"));
}

}  // namespace
}  // namespace recibo::config
