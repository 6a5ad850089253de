DROP TABLE recibo.client_keys, recibo.idempotency_keys, recibo.items, recibo.aliases, recibo.registrations, recibo.operations;
