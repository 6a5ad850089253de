#include "recibo/core/file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace recibo {
namespace {

using fault = file_reading::fault;

class File : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("recibo-file-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& bytes) const {
    const auto path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(File, IsReadAsItIs) {
  for (const std::string& bytes : {std::string(), std::string("a\0b\r\n\xff", 6), std::string(200'000, 'x')}) {
    const auto read = read_file(write(bytes), 200'000);
    EXPECT_EQ(read.why, fault::none);
    EXPECT_EQ(read.bytes, bytes);
  }
}

TEST_F(File, OneByteTooManyIsTooLong) {
  EXPECT_TRUE(read_file(write(std::string(1024, 'x')), 1024));
  EXPECT_EQ(read_file(write(std::string(1025, 'x')), 1024).why, fault::too_long);
  EXPECT_EQ(to_string(fault::too_long, 64 << 10), "is longer than 64 KiB");
  EXPECT_EQ(to_string(fault::too_long, 4 << 20), "is longer than 4 MiB");
}

TEST_F(File, WhatIsNoFileSaysWhatItIs) {
  EXPECT_EQ(read_file(folder_ / "nothing", 10).why, fault::absent);
  EXPECT_EQ(read_file(folder_, 10).why, fault::folder);
  EXPECT_EQ(read_file(folder_, 10, true).why, fault::folder);
  EXPECT_EQ(read_file("/dev/zero", 10).why, fault::no_file);
}

TEST_F(File, WhatNeverEndsCostsItsLimit) { EXPECT_EQ(read_file("/dev/zero", 1 << 20, true).why, fault::too_long); }

}  // namespace
}  // namespace recibo
