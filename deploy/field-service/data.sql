-- About 50,000 rows, the same ones every time.
DO $$ BEGIN PERFORM setseed(0.42); END $$;

INSERT INTO regions (id, name) VALUES
  ('north', 'North'), ('east', 'East'), ('south', 'South'), ('west', 'West'),
  ('coast', 'Coast'), ('hills', 'Hills'), ('valley', 'Valley'), ('islands', 'Islands');

INSERT INTO technicians (id, name, phone, skills, hourly_rate)
SELECT lower(name), name || ' ' || surname, '+49 30 ' || (100000 + n * 7919),
       CASE n % 3 WHEN 0 THEN '["heating", "gas"]' WHEN 1 THEN '["electric"]' ELSE '["heating", "electric", "solar"]' END::jsonb,
       38 + n * 0.25
FROM unnest(ARRAY['Anna', 'Bruno', 'Carla', 'Deniz', 'Emil', 'Fatma', 'Georg', 'Hanna', 'Igor', 'Jule', 'Kofi', 'Lena',
                  'Malik', 'Nora', 'Otto', 'Paula', 'Quentin', 'Rosa', 'Sami', 'Tilda', 'Umut', 'Vera', 'Willem', 'Yara'],
            ARRAY['Adler', 'Berg', 'Conti', 'Demir', 'Ebert', 'Falk', 'Graf', 'Horn', 'Ivanov', 'Jansen', 'Kern', 'Lorenz',
                  'Mayer', 'Nowak', 'Ott', 'Peters', 'Quast', 'Roth', 'Sahin', 'Thoms', 'Ulrich', 'Vogt', 'Weiss', 'Yilmaz'])
  WITH ORDINALITY AS t (name, surname, n);

-- Everyone works in two neighbouring regions; Anna and Bruno share the north.
INSERT INTO memberships (technician_id, region_id)
SELECT t.id, r.id
FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM technicians) AS t
JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM regions) AS r ON r.n IN (t.n % 8, (t.n + 1) % 8)
ON CONFLICT DO NOTHING;
INSERT INTO memberships (technician_id, region_id) VALUES ('anna', 'north'), ('bruno', 'north') ON CONFLICT DO NOTHING;

INSERT INTO customers (id, region_id, name, street, city, phone, contact, archived)
SELECT md5('customer ' || n)::uuid,
       (ARRAY['north', 'east', 'south', 'west', 'coast', 'hills', 'valley', 'islands'])[1 + floor(random() * 8)::int],
       (ARRAY['Bakery', 'Hotel', 'School', 'Surgery', 'Workshop', 'Library', 'Café', 'Greenhouse'])[1 + floor(random() * 8)::int]
         || ' ' || (ARRAY['Zur Linde', 'Am Markt', 'Sonnenhof', 'Müller & Söhne', 'O''Brien', '"Die Ecke"', 'Nr. ' || n])[1 + floor(random() * 7)::int],
       'Hauptstraße ' || 1 + floor(random() * 200)::int, 'City ' || 1 + floor(random() * 40)::int,
       CASE WHEN random() < 0.9 THEN '+49 40 ' || floor(random() * 1e6)::int END,
       CASE WHEN random() < 0.8
         THEN jsonb_build_object('email', 'office' || n || '@example.org', 'language', (ARRAY['de', 'en', 'tr'])[1 + floor(random() * 3)::int]) END,
       random() < 0.03
FROM generate_series(1, 6000) AS n;

INSERT INTO parts (id, name, price, weight_kg, stock, discontinued)
SELECT 'P-' || to_char(n, 'FM0000'), (ARRAY['Valve', 'Pump', 'Fuse', 'Sensor', 'Hose', 'Gasket', 'Relay', 'Filter'])[1 + n % 8] || ' ' || n,
       round((random() * 400)::numeric, 2), CASE WHEN random() < 0.95 THEN round((random() * 20)::numeric, 3)::float8 END,
       floor(random() * 500)::int, random() < 0.05
FROM generate_series(1, 800) AS n;

INSERT INTO manuals (id, title, pages, skills)
SELECT n, 'Manual ' || n, 4 + floor(random() * 300)::int,
       CASE n % 4 WHEN 0 THEN '["heating"]' WHEN 1 THEN '["electric"]' WHEN 2 THEN '["gas", "heating"]' ELSE '["solar"]' END::jsonb
FROM generate_series(1, 60) AS n;

INSERT INTO work_orders (id, number, customer_id, region_id, technician_id, status, urgency, title, scheduled_on, updated_at)
SELECT md5('order ' || o.n)::uuid, 10000 + o.n, c.id, c.region_id,
       CASE WHEN o.assigned < 0.93 THEN m.technician_id END,
       CASE WHEN o.progress < 0.80 AND o.assigned < 0.93 THEN 'done'
            WHEN o.progress < 0.90 AND o.assigned < 0.93 THEN 'planned'
            WHEN o.progress < 0.92 AND o.assigned < 0.93 THEN 'working' ELSE 'open' END::order_status,
       floor(o.urgent * 4)::int,
       (ARRAY['No heat', 'Water under the boiler', 'Yearly check', 'Replace meter', 'Strange noise', 'Second quote'])[1 + o.n % 6],
       CASE WHEN o.urgent < 0.9 THEN date '2026-01-05' + (o.n % 300) END,
       timestamptz '2026-01-01 06:00:00+00' + o.n * interval '17 minutes 3.141592 seconds'
FROM (SELECT n, random() AS assigned, random() AS progress, random() AS urgent, 1 + floor(random() * 6000)::int AS customer, random() AS pick
      FROM generate_series(1, 12000) AS n) AS o
JOIN customers AS c ON c.id = md5('customer ' || o.customer)::uuid
JOIN LATERAL (
  SELECT technician_id FROM memberships WHERE region_id = c.region_id
  ORDER BY technician_id OFFSET floor(o.pick * (SELECT count(*) FROM memberships WHERE region_id = c.region_id)) LIMIT 1
) AS m ON true;

INSERT INTO notes (id, order_id, author, body, written_at)
SELECT md5('note ' || n)::uuid, md5('order ' || (1 + (n * 7) % 12000))::uuid, (ARRAY['office', 'technician', 'customer'])[1 + n % 3],
       (ARRAY['Key is with the neighbour.', 'Customer calls back — "after six".', 'Part ordered; see back\slash label.',
              'Please ring twice 🔔', 'Nobody there.', E'Two lines:\tone tab'])[1 + floor(random() * 6)::int],
       timestamptz '2026-01-01 06:00:00+00' + n * interval '11 minutes'
FROM generate_series(1, 14000) AS n;

INSERT INTO visits (id, order_id, technician_id, starts_at, minutes)
SELECT md5('visit ' || n)::uuid, o.id, o.technician_id, timestamp '2026-01-05 08:00' + n * interval '13 minutes', 15 + floor(random() * 12)::int * 15
FROM generate_series(1, 8000) AS n
JOIN work_orders AS o ON o.id = md5('order ' || (1 + (n * 11) % 12000))::uuid;

INSERT INTO order_parts (id, order_id, part_id, quantity)
SELECT md5('use ' || n)::uuid, md5('order ' || (1 + (n * 13) % 12000))::uuid, 'P-' || to_char(1 + floor(random() * 800)::int, 'FM0000'),
       1 + floor(random() * random() * 20)::int
FROM generate_series(1, 9500) AS n;

ANALYZE;
