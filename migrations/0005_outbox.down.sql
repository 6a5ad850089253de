DROP TABLE recibo.notifications;
