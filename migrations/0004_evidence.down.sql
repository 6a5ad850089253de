DROP TABLE recibo.audit, recibo.transitions;
