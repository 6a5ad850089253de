DROP TABLE recibo.payload_accesses, recibo.failed_callbacks, recibo.reviews;
