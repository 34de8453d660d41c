module larder/scripts/proof/pump

go 1.19
