-- The field-service example: what a firm that repairs things at its customers' keeps.
CREATE TYPE order_status AS ENUM ('open', 'planned', 'working', 'done');

CREATE TABLE regions (
  id text PRIMARY KEY,
  name text NOT NULL
);

CREATE TABLE technicians (
  id text PRIMARY KEY,
  name text NOT NULL,
  phone text,
  skills jsonb NOT NULL DEFAULT '[]',
  hourly_rate numeric(8, 2) NOT NULL
);

CREATE TABLE memberships (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  technician_id text NOT NULL REFERENCES technicians ON DELETE CASCADE,
  region_id text NOT NULL REFERENCES regions ON DELETE CASCADE,
  UNIQUE (technician_id, region_id)
);

CREATE TABLE customers (
  id uuid PRIMARY KEY,
  region_id text NOT NULL REFERENCES regions,
  name text NOT NULL,
  street text NOT NULL,
  city text NOT NULL,
  phone text,
  contact jsonb,
  archived boolean NOT NULL DEFAULT false
);

CREATE TABLE parts (
  id text PRIMARY KEY,
  name text NOT NULL,
  price numeric(10, 2) NOT NULL,
  weight_kg double precision,
  stock integer NOT NULL,
  discontinued boolean NOT NULL DEFAULT false
);

CREATE TABLE manuals (
  id integer PRIMARY KEY,
  title text NOT NULL,
  pages integer NOT NULL,
  skills jsonb NOT NULL
);

CREATE TABLE work_orders (
  id uuid PRIMARY KEY,
  number integer NOT NULL UNIQUE,
  customer_id uuid NOT NULL REFERENCES customers,
  region_id text NOT NULL REFERENCES regions,
  technician_id text REFERENCES technicians ON DELETE SET NULL,
  status order_status NOT NULL DEFAULT 'open',
  urgency smallint NOT NULL DEFAULT 0,
  title text NOT NULL,
  scheduled_on date,
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE notes (
  id uuid PRIMARY KEY,
  order_id uuid NOT NULL REFERENCES work_orders ON DELETE CASCADE,
  author text NOT NULL,
  body text NOT NULL,
  written_at timestamptz NOT NULL
);

CREATE TABLE visits (
  id uuid PRIMARY KEY,
  order_id uuid NOT NULL REFERENCES work_orders ON DELETE CASCADE,
  technician_id text REFERENCES technicians ON DELETE SET NULL,
  starts_at timestamp NOT NULL,
  minutes integer NOT NULL
);

CREATE TABLE order_parts (
  id uuid PRIMARY KEY,
  order_id uuid NOT NULL REFERENCES work_orders ON DELETE CASCADE,
  part_id text NOT NULL REFERENCES parts,
  quantity integer NOT NULL
);

CREATE INDEX ON work_orders (technician_id);
CREATE INDEX ON work_orders (region_id);
CREATE INDEX ON customers (region_id);
CREATE INDEX ON notes (order_id);
CREATE INDEX ON visits (order_id);
CREATE INDEX ON order_parts (order_id);
