-- What was registered, once it is another: filled in after a callback had begun the operation, or edited.
-- oldest-binary: 0.1.0
--
-- Reason: a registration is evidence and never changes (R3, R11). What stands now is the latest correction, written whole, so
-- that nobody has to fold; the operation names it, so that the usual one costs nothing to read. Accounts are an intent too (R36).

ALTER TABLE recibo.registrations ADD COLUMN account text COLLATE "C";
ALTER TABLE recibo.registrations ADD COLUMN delivery uuid;
ALTER TABLE recibo.parked ADD COLUMN account text COLLATE "C";
ALTER TABLE recibo.operations ADD COLUMN corrected integer CONSTRAINT operations_corrected_positive CHECK (corrected > 0);
COMMENT ON COLUMN recibo.registrations.account IS 'Whose money it is, byte for byte; NULL: nobody said.';
COMMENT ON COLUMN recibo.registrations.delivery IS 'The callback that registered it (`unmatched: register`); NULL: a client did.';
COMMENT ON COLUMN recibo.parked.account IS 'Account as said.';
COMMENT ON COLUMN recibo.operations.corrected IS 'corrections.sequence of what is registered now; NULL: the registration as it was made.';

CREATE TABLE recibo.corrections (
  operation uuid NOT NULL,
  sequence integer NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT corrections_kind CHECK (kind IN ('registered', 'edited')),
  client text COLLATE "C" NOT NULL,
  action text NOT NULL,
  reference text COLLATE "C",
  amount text COLLATE "C",
  currency text COLLATE "C" CONSTRAINT corrections_currency_code CHECK (currency ~ '^[A-Z]{3}$'),
  account text COLLATE "C",
  deadline timestamptz,
  metadata jsonb NOT NULL,
  intent bytea NOT NULL CONSTRAINT corrections_intent_length CHECK (octet_length(intent) = 32),
  at timestamptz NOT NULL,
  actor text NOT NULL,
  CONSTRAINT corrections_pkey PRIMARY KEY (operation, sequence)
);
COMMENT ON TABLE recibo.corrections IS 'What was registered from then on; only ever added to.';
COMMENT ON COLUMN recibo.corrections.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.corrections.sequence IS 'Its audit row.';
COMMENT ON COLUMN recibo.corrections.kind IS 'registered: a client registered what a callback had begun; edited: by the event edit.';
COMMENT ON COLUMN recibo.corrections.client IS 'As registrations.client, from then on.';
COMMENT ON COLUMN recibo.corrections.action IS 'As registrations.action.';
COMMENT ON COLUMN recibo.corrections.reference IS 'As registrations.reference.';
COMMENT ON COLUMN recibo.corrections.amount IS 'As registrations.amount.';
COMMENT ON COLUMN recibo.corrections.currency IS 'As registrations.currency.';
COMMENT ON COLUMN recibo.corrections.account IS 'As registrations.account.';
COMMENT ON COLUMN recibo.corrections.deadline IS 'As registrations.deadline.';
COMMENT ON COLUMN recibo.corrections.metadata IS 'As registrations.metadata.';
COMMENT ON COLUMN recibo.corrections.intent IS 'Of the registration that a repetition is compared with: an edit leaves it as it was.';
COMMENT ON COLUMN recibo.corrections.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.corrections.actor IS 'Name of the API token.';
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, event, payload_access, correction.';
CREATE INDEX corrections_metadata ON recibo.corrections USING gin (metadata jsonb_path_ops) WHERE metadata <> '{}';
GRANT SELECT, INSERT ON recibo.corrections TO recibo_service;

ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch',
  'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch'));
