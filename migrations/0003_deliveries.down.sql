DROP TABLE recibo.payloads, recibo.deliveries;
