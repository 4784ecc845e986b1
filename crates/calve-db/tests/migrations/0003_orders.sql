CREATE TYPE order_state AS ENUM ('new', 'paid', 'sent');
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers ON DELETE CASCADE,
    state order_state NOT NULL DEFAULT 'new',
    total numeric(12, 2) NOT NULL CHECK (total >= 0),
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX orders_open ON orders (customer_id) WHERE state <> 'sent';
CREATE FUNCTION touch_customer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE customers SET name = name WHERE id = NEW.customer_id;
    RETURN NEW;
END $$;
CREATE TRIGGER orders_touch AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION touch_customer();
