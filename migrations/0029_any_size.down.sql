DROP INDEX recibo.failed_callbacks_request;
DROP INDEX recibo.reviews_open_age;
DROP INDEX recibo.reviews_request;
DROP INDEX recibo.parked_age;
DROP INDEX recibo.look_ups_leased;
DROP INDEX recibo.look_ups_next;
DROP INDEX recibo.notifications_stopped_id;
DROP INDEX recibo.notifications_waiting;
ALTER TABLE recibo.notifications DROP COLUMN behind;
