DROP TABLE recibo.parked_identities, recibo.parked;
