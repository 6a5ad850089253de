DROP TABLE recibo.signed_contents;
