#include "recibo/postgres/sqlstate.hpp"

#include <gtest/gtest.h>

namespace recibo::postgres {
namespace {

struct row {
  const char* name;
  const char* sqlstate;
  const char* constraint;
  fault expected;
};

class Sqlstate : public testing::TestWithParam<row> {};

TEST_P(Sqlstate, IsClassified) {
  const auto& r = GetParam();
  const server_error e{r.sqlstate, r.constraint, "text"};
  EXPECT_EQ(classify(e), r.expected);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Sqlstate,
    testing::Values(
        row{"StringTooLong", "22001", "", fault::senders_data}, row{"CharacterNotInRepertoire", "22021", "", fault::senders_data},
        row{"UntranslatableCharacter", "22P05", "", fault::senders_data}, row{"BinaryFormOfOurs", "22P03", "", fault::ours},
        row{"CheckCausedBySender", "23514", "callbacks_amount_from_sender", fault::senders_data},
        row{"CheckOfOurs", "23514", "operations_state_known", fault::ours}, row{"MissingPartition", "23514", "", fault::ours},
        row{"NameOnlyContainsTheWord", "23514", "x_from_sender_y", fault::ours},
        row{"UniqueViolationIsARace", "23505", "operations_request_id_key", fault::race},
        row{"UniqueViolationNamedFromSenderIsStillARace", "23505", "x_from_sender", fault::race},
        row{"ForeignKey", "23503", "x", fault::ours}, row{"Exclusion", "23P01", "x", fault::ours},
        row{"SerializationFailure", "40001", "", fault::transient}, row{"Deadlock", "40P01", "", fault::transient},
        row{"CompletionUnknown", "40003", "", fault::uncertain}, row{"LockNotAvailable", "55P03", "", fault::transient},
        row{"QueryCanceled", "57014", "", fault::transient}, row{"AdminShutdown", "57P01", "", fault::transient},
        row{"CrashShutdown", "57P02", "", fault::transient}, row{"CannotConnectNow", "57P03", "", fault::transient},
        row{"ReadOnly", "25006", "", fault::transient}, row{"FailedTransaction", "25P02", "", fault::ours},
        row{"TooManyConnections", "53300", "", fault::transient}, row{"DiskFull", "53100", "", fault::transient},
        row{"ConnectionFailure", "08006", "", fault::transient}, row{"ResolutionUnknown", "08007", "", fault::uncertain},
        row{"ProgramLimit", "54000", "", fault::ours}, row{"NoSuchTable", "42P01", "", fault::ours},
        row{"NoPrivilege", "42501", "", fault::ours}, row{"Internal", "XX000", "", fault::ours},
        row{"Empty", "", "", fault::ours}),
    [](const auto& tested) { return tested.param.name; });

outcome refused(const char* sqlstate) {
  outcome o;
  o.refused = server_error{sqlstate, "", "secret text of the server"};
  return o;
}

outcome lost(bool sync_sent, bool timed_out) {
  outcome o;
  o.lost = true;
  o.sync_sent = sync_sent;
  o.timed_out = timed_out;
  return o;
}

TEST(Outcome, LostBeforeTheSyncIsTransient) { EXPECT_EQ(classify(lost(false, false)), fault::transient); }

TEST(Outcome, LostAfterTheSyncIsUncertainTimedOutOrNot) {
  EXPECT_EQ(classify(lost(true, false)), fault::uncertain);
  EXPECT_EQ(classify(lost(true, true)), fault::uncertain);
}

TEST(Outcome, BecomesTheErrorThatSaysWhatMayBeDone) {
  EXPECT_EQ(to_error(lost(true, true)).code, uncertain::commit_unknown);
  EXPECT_EQ(to_error(lost(false, true)).code, transient::database_busy);
  EXPECT_EQ(to_error(lost(false, false)).code, transient::database_away);
  EXPECT_EQ(to_error(refused("57P01")).code, transient::database_away);
  EXPECT_EQ(to_error(refused("25006")).code, transient::database_away);
  EXPECT_EQ(to_error(refused("40001")).code, transient::database_busy);
  EXPECT_EQ(to_error(refused("53300")).code, transient::database_busy);
  EXPECT_EQ(to_error(refused("08007")).code, uncertain::commit_unknown);
  for (const auto* ours : {"22001", "23505", "23503", "42P01"})
    EXPECT_EQ(to_error(refused(ours)).code, transient::our_fault) << ours;
}

TEST(Outcome, ErrorNeverCarriesTheServersText) {
  for (const auto* state : {"22001", "57P01", "40001", "08007"}) {
    EXPECT_EQ(to_error(refused(state)).detail.find("secret"), std::string::npos) << state;
  }
}

}  // namespace
}  // namespace recibo::postgres
