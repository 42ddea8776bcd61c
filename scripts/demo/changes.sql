-- An ordinary minute in the shop, while its changes stream: each block is a transaction of its own.

-- A new customer orders, pays and asks.
BEGIN;
INSERT INTO users (customer_number, full_name, email, phone, birth_date, interests, created_at)
VALUES ('SHOP-9001-0000-0001', 'Wilhelmina Castellanos-Xenakis', 'wilhelmina@correo.test', '+34 699 111 222', '1988-02-29',
        '{jazz,"rowing, at dawn"}', '2026-01-05 08:15:30.123456+01');
INSERT INTO addresses (customer_number, kind, street, postcode, city, country)
VALUES ('SHOP-9001-0000-0001', 'billing', 'Calle del Olivo 77, flat 9001', '41013', 'Sevilla', 'ES');
INSERT INTO orders (id, customer_number, status, articles, total, placed_at)
VALUES (9001, 'SHOP-9001-0000-0001', 'paid', '{A-90001}', 199.90, '2026-01-05 08:20:00+01');
INSERT INTO payments VALUES ('9001aaaa-0000-4000-8000-000000009001', 9001, '0123 4567 8901 2345', 'Wilhelmina Castellanos-Xenakis',
                             NULL, 199.90, '2026-01-05 08:21:00+01');
INSERT INTO support_messages (customer_number, subject, body, client_address, sent_at)
VALUES ('SHOP-9001-0000-0001', 'A gift for Wilhelmina', 'Please leave it with Wilhelmina Castellanos-Xenakis next door.', '203.0.113.7',
        '2026-01-05 09:00:00+01');
COMMIT;

-- Many rows at once: a sale.
UPDATE orders SET total = round(total * 0.9, 2), details = coalesce(details, '{}') || '{"sale": true}' WHERE status = 'cart';
UPDATE users SET preferences = preferences || '{"newsletter": false}' WHERE id % 10 = 0;

-- People move, marry, and change their number.
UPDATE addresses SET street = 'Leuchtturmweg 4, flat ' || id, postcode = '18147' WHERE id BETWEEN 100 AND 140;
UPDATE users SET full_name = 'Ottoline Fjeldstad-Vanderbeek', email = 'ottoline.fjeldstad@mejl.test', phone = NULL WHERE id = 42;
UPDATE payments SET card_number = NULL, card_holder = NULL WHERE order_id BETWEEN 200 AND 220;

-- A key change: the old customer number is looked up by its mask, and the foreign keys follow.
UPDATE users SET customer_number = 'SHOP-9002-0000-0002' WHERE id = 7;

-- Rolled back: nothing of it may arrive.
BEGIN;
INSERT INTO support_messages (customer_number, subject, body, sent_at)
SELECT customer_number, 'never sent', 'This message was never sent by anyone.', now() FROM users WHERE id < 50;
ROLLBACK;

-- Somebody asks to be forgotten; old carts go.
BEGIN;
DELETE FROM orders WHERE customer_number = (SELECT customer_number FROM users WHERE id = 99);
DELETE FROM users WHERE id = 99;
COMMIT;
DELETE FROM orders WHERE status = 'cart' AND placed_at < '2024-03-01';
DELETE FROM support_messages WHERE id % 100 = 0;
